/** The `ssh` of this machine as a client of a platform, with its own keys and without a user's settings. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Platform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import type { Owner } from '../../support/upstream.ts'

/** Why tests here cannot run; false when they can. */
export const missing = spawnSync('ssh', ['-V']).error !== undefined && 'OpenSSH (`ssh`) is not on PATH'

export interface Key {
  readonly file: string
  readonly publicLine: string
}

/** A folder for keys, removed when the process ends. */
export function keyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-ssh-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function makeKey(folder: string, name: string, options: readonly string[] = ['-t', 'ed25519']): Key {
  const file = join(folder, name)
  execFileSync('ssh-keygen', ['-q', '-N', '', '-C', 'of the tests', ...options, '-f', file])
  return { file, publicLine: readFileSync(`${file}.pub`, 'utf8').trim() }
}

export interface Ssh {
  readonly child: ChildProcess
  out(): string
  err(): string
  /** Resolves once stdout or stderr has a match; rejects if the client ends before. */
  says(text: RegExp): Promise<RegExpExecArray>
  /** The URL of the nth forward. */
  url(nth?: number): Promise<string>
  readonly ended: Promise<number | null>
  stop(): Promise<void>
}

/** Runs `ssh` against a platform until the test is over; `args` come before the host, `command` after it. */
export function ssh(
  owner: Owner,
  { sshPort }: Platform,
  key: Key,
  args: readonly string[],
  command: readonly string[],
  { user }: { readonly user?: string } = {},
): Ssh {
  const client = runSsh({ port: sshPort, key, args, command, user })
  owner.after(() => client.stop())
  return client
}

export interface SshCall {
  readonly port: number
  readonly key: Pick<Key, 'file'>
  readonly args: readonly string[]
  readonly command: readonly string[]
  readonly user?: string | undefined
}

/** Runs `ssh` until it is stopped. */
export function runSsh({ port, key, args, command, user }: SshCall): Ssh {
  const options = {
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    StrictHostKeyChecking: 'no',
    UserKnownHostsFile: '/dev/null',
    LogLevel: 'INFO',
  }
  const host = user === undefined ? '127.0.0.1' : `${user}@127.0.0.1`
  return runClient('ssh', [
    ...['-F', '/dev/null', '-i', key.file, '-p', String(port)],
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    ...args,
    host,
    ...command,
  ])
}

/** Runs a client of any kind until it is stopped, and records its output; its input ends at once, or stays open. */
export function runClient(program: string, args: readonly string[], { isInputOpen = false } = {}): Ssh {
  const child = spawn(program, args, { stdio: 'pipe' })
  if (!isInputOpen) child.stdin.end()
  const printed = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed.err += text
  })
  let isClosed = false
  const ended = once(child, 'close').then(() => {
    isClosed = true
    return child.exitCode
  })
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  const says = (text: RegExp): Promise<RegExpExecArray> =>
    until(`${program} says ${text}: ${JSON.stringify(printed)}`, () => {
      const found = text.exec(printed.out) ?? text.exec(printed.err)
      // Not at its exit, since its last output may still be on the way.
      if (!found && isClosed) throw new Error(`${program} ended: ${JSON.stringify(printed)}`)
      return found ?? undefined
    })
  return {
    child,
    out: () => printed.out,
    err: () => printed.err,
    says,
    async url(nth = 0) {
      const found = await says(new RegExp(`(?:Forwarding +(\\S+)\\n[^]*?){${nth + 1}}`))
      return found[1] ?? ''
    },
    ended,
    stop,
  }
}
