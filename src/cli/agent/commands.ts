/** What the command-line agent does when the server tells it to restart, stop or update. */
import { type Commands, noCommands } from '../../agent/agent-commands.ts'
import type { AgentConfig } from '../../agent/config/connection.ts'
import { versionsFolder } from '../../agent/update/installed.ts'
import { releaseKey } from '../../agent/update/release-key.ts'
import { releaseSource } from '../../agent/update/release-source.ts'
import { Updater, type UpdaterOptions } from '../../agent/update/updater.ts'
import { misuse } from '../command-failure.ts'

interface CommandActions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly onStop: () => void
  readonly onRestart: () => void
  readonly onUpdate: UpdaterOptions['onDone']
}

export function agentCommands(config: AgentConfig, actions: CommandActions): Commands {
  if (!config.remoteManagement) return noCommands('remote management is disabled in the configuration of the agent')
  const { onStop, onRestart } = actions
  return {
    restart: {
      unsupported: process.platform === 'win32' ? 'restart is not supported on Windows' : '',
      run: () => ({ afterwards: onRestart }),
    },
    stop: { unsupported: '', run: () => ({ afterwards: onStop }) },
    update: updater(config, actions),
  }
}

function updater(
  { update, updateChecks }: AgentConfig,
  { env, version, onUpdate }: CommandActions,
): Commands['update'] {
  if (!updateChecks) return noCommands('update checks are disabled in the configuration of the agent').update
  if (!update) return noCommands('no source of updates is configured for the agent').update
  try {
    return new Updater({
      version,
      source: releaseSource(update.source),
      publicKey: releaseKey(update.publicKey),
      folder: versionsFolder(env),
      onDone: onUpdate,
    })
  } catch (error) {
    throw misuse(`\`update.public_key\` ${error instanceof Error ? error.message : String(error)}`)
  }
}
