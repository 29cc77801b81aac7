/** Puts another process in place of this one: the same arguments, perhaps another release. */
import { spawnSync } from 'node:child_process'
import { hasLauncher } from '../launcher.ts'

/** Starts `launcher` with Node; this process is over. What it held open must be closed before. */
export function become(launcher: string, args: readonly string[]): void {
  const argv = [...process.execArgv, launcher, ...args]
  // A launcher on an older Node stands before us and would not know the new process: it starts it itself.
  if (hasLauncher()) process.send?.({ start: launcher }, () => process.exit(0))
  // The process id stays, so whoever watches over us goes on doing so.
  else if (process.execve) process.execve(process.execPath, [process.execPath, ...argv], process.env)
  else process.exit(spawnSync(process.execPath, argv, { stdio: 'inherit' }).status ?? 1)
}
