/** Tells systemd that the server is ready or stopping, for units with `Type=notify`. */
import { execFile } from 'node:child_process'
import type { Logger } from '../lib/log/create-log.ts'

/** How long the notification may take, in milliseconds. */
const TELL_MS = 10_000

interface SystemdContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
}

/** Does nothing outside such a unit. */
export function tellSystemd(state: 'READY=1' | 'STOPPING=1', { env, log }: SystemdContext): void {
  const { NOTIFY_SOCKET, PATH } = env
  if (!NOTIFY_SOCKET) return
  // Uses systemd's own program, since Node cannot send to a Unix datagram socket. The program does not get our other environment
  // variables, which hold secrets and describe our listeners.
  execFile('systemd-notify', [state], { env: { NOTIFY_SOCKET, PATH }, timeout: TELL_MS }, (err) => {
    if (err) log.warn({ err, state }, 'systemd could not be notified; it may treat the server as hung')
  })
}
