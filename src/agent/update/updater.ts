/** The update command: when an agent refuses to update itself, and what it does otherwise. */
import type { UpdateCommand } from '../../link/wire/messages/command-messages.ts'
import type { CommandHandler, CommandOutcome } from '../agent-commands.ts'
import type { Install } from './install.ts'
import { installedUpdate } from './installed.ts'
import { chooseRelease, type Release, readReleases } from './releases.ts'

export interface UpdaterOptions extends Pick<Install, 'source' | 'publicKey' | 'folder'> {
  /** The version that is running. */
  readonly version: string
  /** Called when the installation, which begins after the answer, has ended. */
  readonly onDone: (result: { version: string; error?: Error }) => void
}

/** Contract 4.3 rule 4 has four reasons to refuse. The fourth, disabled update checks, is expressed by having no updater. */
export class Updater implements CommandHandler {
  readonly unsupported = ''
  readonly #options: UpdaterOptions
  #isBusy = false

  constructor(options: UpdaterOptions) {
    this.#options = options
  }

  async run(command?: UpdateCommand): Promise<CommandOutcome> {
    const { version, folder, source } = this.#options
    if (this.#isBusy) return { error: 'an update is already in progress' }
    const installed = installedUpdate(folder, version)
    if (installed) return { error: `the agent is already updated to ${installed.version} and has not been restarted` }
    this.#isBusy = true
    try {
      const wanted = command?.version ?? ''
      const release = chooseRelease(await readReleases(source), { current: version, wanted })
      if (release) return { afterwards: () => void this.#install(release) }
      this.#isBusy = false
      const [major] = version.split('.')
      const why = wanted === '' ? `is the newest release of major version ${major}` : `cannot be updated to ${wanted}`
      return { error: `no update is available: ${version} ${why}` }
    } catch (error) {
      this.#isBusy = false
      return { error: error instanceof Error ? error.message : String(error) }
    }
  }

  async #install(release: Release): Promise<void> {
    const { source, publicKey, folder, onDone } = this.#options
    try {
      // Loaded on use: most agents never update.
      const { installRelease } = await import('./install.ts')
      const { version } = await installRelease({ release, source, publicKey, folder })
      this.#isBusy = false
      onDone({ version })
    } catch (error) {
      this.#isBusy = false
      onDone({ version: release.version, error: error instanceof Error ? error : new Error(String(error)) })
    }
  }
}
