/** The `sshd` of this machine, for this user only: in the foreground, on its own loopback port and settings. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { portToKeep } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import type { Key } from './openssh.ts'

// sshd refuses to start by a relative name.
const PROGRAM = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/usr/bin/sshd', '/opt/homebrew/sbin/sshd'].find(
  (each) => spawnSync(each, ['-V']).error === undefined,
)

/** Why tests with sshd cannot run; false when they can. */
export const missingSshd = PROGRAM === undefined && 'the OpenSSH server (`sshd`) is not on this machine'

export const me = userInfo().username

export interface HostKey extends Key {
  /** The file of its certificate. */
  readonly certificate: string
}

export interface Sshd {
  readonly port: number
  log(): string
  stop(): Promise<void>
}

/** `authorities` are the public key lines of the authorities for users. */
export async function startSshd(
  folder: string,
  { hostKeys, authorities }: { readonly hostKeys: readonly HostKey[]; readonly authorities: readonly string[] },
): Promise<Sshd> {
  if (PROGRAM === undefined) throw new Error('there is no sshd')
  // A system folder that a package creates at boot, and without which root cannot start sshd.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  // sshd cannot choose a free port itself.
  const port = await portToKeep()
  const trusted = join(folder, 'trusted-user-cas')
  writeFileSync(trusted, authorities.map((line) => `${line}\n`).join(''))
  const config = join(folder, 'sshd_config')
  const lines = [
    'ListenAddress 127.0.0.1',
    `Port ${port}`,
    ...hostKeys.flatMap(({ file, certificate }) => [`HostKey ${file}`, `HostCertificate ${certificate}`]),
    `TrustedUserCAKeys ${trusted}`,
    'AuthorizedKeysFile none',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'UsePAM no',
    'StrictModes no',
    'PidFile none',
    'LogLevel VERBOSE',
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  execFileSync(PROGRAM, ['-t', '-f', config])
  const child: ChildProcess = spawn(PROGRAM, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const ended = once(child, 'close')
  await until('sshd listens', () => {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${log}`)
    return log.includes('Server listening')
  })
  return {
    port,
    log: () => log,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
