/** The `dbclient` of dropbear as a client of a platform. */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { Platform } from '../../support/platform.ts'
import type { Owner } from '../../support/upstream.ts'
import { type Key, runClient, type Ssh } from './openssh.ts'

const isMissing = ['dbclient', 'dropbearkey'].some((program) => spawnSync(program, ['-V']).error !== undefined)

/** Why tests with dropbear cannot run; false when they can. */
export const missing = isMissing && 'dropbear (`dbclient` and `dropbearkey`) is not on PATH'

export function makeKey(folder: string, name: string, options: readonly string[] = ['-t', 'ed25519']): Key {
  const file = join(folder, name)
  const printed = execFileSync('dropbearkey', [...options, '-f', file], { encoding: 'utf8', stdio: 'pipe' })
  const [publicLine = ''] = /^(ssh|ecdsa)-\S+ \S+/m.exec(printed) ?? []
  return { file, publicLine }
}

/** Runs `dbclient` against a platform, like `ssh()`. */
export function dbclient(
  owner: Owner,
  { sshPort }: Pick<Platform, 'sshPort'>,
  key: Key,
  args: readonly string[],
  command: readonly string[],
  options?: Parameters<typeof runClient>[2],
): Ssh {
  // `-y` twice: accepts any key of the server, and does not store it.
  const all = ['-y', '-y', '-i', key.file, '-p', String(sshPort), ...args, 'v2@127.0.0.1', ...command]
  const client = runClient('dbclient', all, options)
  owner.after(() => client.stop())
  return client
}
