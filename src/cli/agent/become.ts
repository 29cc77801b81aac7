/** Replaces this process with a new one: the same arguments, perhaps another release. */
import { spawnSync } from 'node:child_process'
import { hasLauncher } from '../launcher.ts'

/** Starts `launcher` with Node in place of this process. Everything it holds open must be closed before. */
export function become(launcher: string, args: readonly string[]): void {
  const argv = [...process.execArgv, launcher, ...args]
  // Under a launcher, the launcher starts the new process, since it has to know its child.
  if (hasLauncher()) process.send?.({ start: launcher }, () => process.exit(0))
  // The process id stays the same, so a service manager keeps track of it.
  else if (process.execve) process.execve(process.execPath, [process.execPath, ...argv], process.env)
  else process.exit(spawnSync(process.execPath, argv, { stdio: 'inherit' }).status ?? 1)
}
