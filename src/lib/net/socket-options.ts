/** What Node is to do with each socket that a listener accepts. */
import type { ServerOpts } from 'node:net'

/** How long a connection is silent before the system asks whether the other end is still there, in milliseconds. */
const KEEP_ALIVE_MS = 60_000

/** Visitors may end their side and still be answered. */
export const visitorSockets: ServerOpts = {
  allowHalfOpen: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_MS,
}

/** Agents and SSH clients show by themselves that they live. */
export const agentSockets: ServerOpts = { noDelay: true }

/** As Node's own HTTP server has them. */
export const httpSockets: ServerOpts = { allowHalfOpen: true, noDelay: true }
