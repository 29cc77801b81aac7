/** Node's options for the sockets that a listener accepts. */
import type { ServerOpts } from 'node:net'

/** How long a connection is silent before the system checks that the other end is still there, in milliseconds. */
const KEEP_ALIVE_MS = 60_000

/** Visitors may end their side and still be answered. */
export const visitorSockets: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_MS,
}

/** Agents and SSH clients have their own keep-alives. */
export const agentSockets: ServerOpts = { noDelay: true }

/** The same as those of Node's HTTP server. */
export const httpSockets: ServerOpts = { allowHalfOpen: true, noDelay: true }
