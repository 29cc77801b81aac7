/** Connects to the first of several addresses that works. */
import type { Duplex } from 'node:stream'
import { AgentFault } from './agent-fault.ts'
import { formatServer, type ServerAddress } from './server-address.ts'
import type { Timers } from './timers.ts'

/** The head start of an address before the next one is tried too, in milliseconds. */
const NEXT_MS = 500

export interface Attempts<S, T> {
  /** Connects, without sending anything. */
  readonly dial: (server: ServerAddress, signal: AbortSignal) => Promise<S>
  /**
   * Authenticates over a connection, and owns it from here on. Never called for two at once, since they would be two
   * connections of one session.
   */
  readonly greet: (server: ServerAddress, socket: S) => Promise<T>
  readonly timers: Timers
}

/**
 * Rejects with the fault of the first address, which is the one to fix. An address that does not respond does not block the
 * others: the next one is tried soon after it, while it may still respond.
 */
export async function connectFirst<S extends Duplex, T>(
  servers: readonly ServerAddress[],
  { dial, greet, timers }: Attempts<S, T>,
): Promise<T> {
  const over = new AbortController()
  const connected: { readonly index: number; readonly server: ServerAddress; readonly socket: S }[] = []
  const faults: unknown[] = []
  let dialling = 0
  let begun = 0
  let isNextDue = true
  let news = Promise.withResolvers<void>()
  let cancelNext = (): void => {}
  const nextIsDue = (): void => {
    isNextDue = true
    news.resolve()
  }
  const failed = (index: number, error: unknown): void => {
    faults[index] = error
    nextIsDue()
  }
  const begin = (server: ServerAddress): void => {
    const index = begun++
    dialling++
    isNextDue = false
    cancelNext()
    if (begun < servers.length) cancelNext = timers.after(NEXT_MS, nextIsDue)
    void dial(server, over.signal)
      .then((socket) => {
        // A connection may break while another one authenticates.
        socket.on('error', () => {})
        if (over.signal.aborted) socket.destroy()
        else connected.push({ index, server, socket })
      })
      .catch((error: unknown) => failed(index, error))
      .finally(() => {
        dialling--
        news.resolve()
      })
  }
  try {
    for (;;) {
      news = Promise.withResolvers()
      const lasting = faults.find(isLasting)
      if (lasting !== undefined) throw lasting
      const arrived = connected.shift()
      const next = servers[begun]
      if (arrived) {
        try {
          if (arrived.socket.destroyed) throw brokenEarly(arrived.server)
          return await greet(arrived.server, arrived.socket)
        } catch (error) {
          failed(arrived.index, error)
        }
      } else if (next && isNextDue) begin(next)
      else if (dialling > 0) await news.promise
      else throw faults.find((fault) => fault !== undefined)
    }
  } finally {
    cancelNext()
    over.abort()
    for (const { socket } of connected) socket.destroy()
  }
}

function brokenEarly(server: ServerAddress): AgentFault {
  return new AgentFault('unreachable', `${formatServer(server)} closed the connection`)
}

/** What one node refuses permanently, the others refuse too. */
function isLasting(fault: unknown): boolean {
  return fault instanceof AgentFault && ['refused', 'closed'].includes(fault.code) && !fault.mayPass
}
