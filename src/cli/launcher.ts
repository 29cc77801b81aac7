/** What changes when `bin/postern.js` runs us as its child, on a machine whose own Node is too old. */

/** Whether a launcher stands before this process: it opens a channel to it. */
export function hasLauncher(): boolean {
  return process.channel !== undefined && process.channel !== null
}

/** Goes when the launcher goes: killed with SIGKILL, it could not tell us, and we would hold its ports as an orphan. */
export function followLauncher(): void {
  if (!hasLauncher()) return
  process.once('disconnect', () => process.exit(1))
  // Waiting for that must not keep a finished command alive.
  process.channel?.unref()
}
