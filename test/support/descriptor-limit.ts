/** Changes how many files a running process may have open. */
import { spawnSync } from 'node:child_process'

/** Returns undefined, or the reason why that is not possible. */
export function limitDescriptors(pid: number | undefined, limit: number): string | undefined {
  const { status, error, stderr } = spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${limit}:`], { encoding: 'utf8' })
  return status === 0 ? undefined : `prlimit is needed: ${error?.message ?? stderr.trim()}`
}
