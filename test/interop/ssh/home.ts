/** The home of a person who follows docs/ssh.md: commands run in a shell, with their own keys and known hosts. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownLauncher } from '../../support/own-launcher.ts'
import { until } from '../../support/until.ts'
import type { Owner } from '../../support/upstream.ts'

export interface Shell {
  out(): string
  /** Resolves once the shell has printed this; rejects if it ends before. */
  says(text: RegExp): Promise<void>
  readonly ended: Promise<number | null>
  /** Ends the shell and all that it started. */
  stop(): Promise<void>
}

export class Home {
  readonly folder: string
  readonly #env: Readonly<Record<string, string>>

  constructor(env: Readonly<Record<string, string>>) {
    this.folder = mkdtempSync(join(tmpdir(), 'postern-home-'))
    this.#env = env
    for (const each of ['.ssh', 'bin']) mkdirSync(join(this.folder, each), { mode: 0o700 })
    const ssh = execFileSync('sh', ['-c', 'command -v ssh'], { encoding: 'utf8' }).trim()
    // OpenSSH gets the home of a user from the system, not from the environment.
    this.#program('ssh', `exec ${ssh} -F "$HOME/.ssh/$SSH_SETTINGS" "$@"`)
    this.#program('postern', `exec ${process.execPath} ${ownLauncher} "$@"`)
    const known = `UserKnownHostsFile ${this.folder}/.ssh/known_hosts\nStrictHostKeyChecking yes\nBatchMode yes\n`
    this.write('.ssh/of-file', `${known}IdentityFile ${this.folder}/.ssh/id_ed25519\nIdentityAgent none\n`)
    this.write('.ssh/of-agent', `${known}IdentityFile none\n`)
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text)
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8')
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Runs a command; without `autossh`, a stand-in connects once and accepts `-M` beyond the options of `ssh`. */
  run(
    owner: Owner,
    text: string,
    { key = 'file', autossh = 'real' }: { key?: 'file' | 'agent'; autossh?: 'real' | 'once' } = {},
  ): Shell {
    if (autossh === 'once') this.#program('autossh', '[ "$1" = -M ] || exit 2\nshift 2\nexec ssh "$@"')
    const child = spawn('sh', ['-ec', text], {
      cwd: this.folder,
      env: {
        ...this.#env,
        HOME: this.folder,
        PATH: `${this.folder}/bin:${process.env.PATH}`,
        // autossh runs the `ssh` that it was built with, even if another comes first in PATH.
        AUTOSSH_PATH: join(this.folder, 'bin', 'ssh'),
        SSH_SETTINGS: `of-${key}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      // In its own process group, so that all of it can be ended.
      detached: true,
    })
    let printed = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (more: string) => {
        printed += more
      })
    }
    const ended = once(child, 'close').then(() => child.exitCode)
    const stop = async (): Promise<void> => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
      } catch {
        // It has already ended.
      }
      await ended
    }
    owner.after(stop)
    return {
      out: () => printed,
      ended,
      stop,
      async says(expected) {
        await until(`the shell says ${expected}: ${printed}`, () => {
          if (!expected.test(printed) && child.exitCode !== null) throw new Error(`it ended: ${printed}`)
          return expected.test(printed)
        })
      },
    }
  }

  #program(name: string, lines: string): void {
    const file = join(this.folder, 'bin', name)
    writeFileSync(file, `#!/bin/sh\n${lines}\n`)
    chmodSync(file, 0o755)
  }
}
