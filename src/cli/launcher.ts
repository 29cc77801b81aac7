/** What changes when `bin/postern.js` runs us as its child, on a machine whose own Node is too old. */

/** Whether a launcher started this process; it opens an IPC channel to its child. */
export function hasLauncher(): boolean {
  return process.channel !== undefined && process.channel !== null
}

/** Exits when the launcher does. If it is killed with SIGKILL it cannot tell us, and we would keep its ports as an orphan. */
export function followLauncher(): void {
  if (!hasLauncher()) return
  process.once('disconnect', () => process.exit(1))
  // The channel must not keep a finished command alive.
  process.channel?.unref()
}
