/** Pins processes to cores, where a machine has enough of them to keep callers and servers apart. */
import { execFileSync } from 'node:child_process'

/** `cpus` as `taskset` takes them, such as `0-3,8`; all threads of the process are pinned. */
export function pinned(pid: number, cpus: string): void {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cpus, String(pid)], { stdio: 'ignore' })
}

/** Three parts of this machine's cores: for the server, for bystanders and for attackers. */
export function threeParts(cores: number): readonly [server: string, bystanders: string, attackers: string] {
  const third = Math.max(1, Math.floor(cores / 3))
  const range = (from: number, to: number): string => `${from}-${Math.max(from, to)}`
  return [range(0, third - 1), range(third, 2 * third - 1), range(2 * third, cores - 1)]
}
