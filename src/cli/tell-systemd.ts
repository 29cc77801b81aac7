/** Tells systemd how far the server is, where its unit says `Type=notify`. */
import { execFile } from 'node:child_process'
import type { Logger } from '../lib/log/log.ts'

/** How long systemd may take to hear us, in milliseconds. */
const TELL_MS = 10_000

export interface SystemdContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
}

/** Does nothing outside of such a unit. */
export function tellSystemd(state: 'READY=1' | 'STOPPING=1', { env, log }: SystemdContext): void {
  const { NOTIFY_SOCKET, PATH } = env
  if (!NOTIFY_SOCKET) return
  // By systemd's own program: Node cannot send to a datagram socket that has a path. It gets none of our other
  // variables, which hold secrets and the listeners that are ours.
  execFile('systemd-notify', [state], { env: { NOTIFY_SOCKET, PATH }, timeout: TELL_MS }, (err) => {
    if (err) log.warn({ err, state }, 'systemd was not told; it may take the server for one that hangs')
  })
}
