/** Tells another node when tunnels that it has reached here end. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Mux } from '../wire/mux.ts'
import { callNode } from './node-calls.ts'

/** How many tunnels are noted; beyond that, the other node is told that the oldest are gone. */
const MAX_REACHED = 100_000

/** Most ids in one message. */
const CONFIRMED_TOGETHER = 10_000

/** How long the other node may take to confirm it, in milliseconds. */
const CONFIRM_MS = 5000

/**
 * The other node may keep connections to a tunnel for later visitors. When the tunnel has ended, that node would let those
 * visitors in by rules that no longer apply.
 */
export class TunnelsReached {
  readonly #session: Mux
  readonly #log: Logger
  readonly #maxReached: number
  /** Ids in the order in which they were last reached. */
  readonly #reached = new Set<string>()
  #gone: string[] = []
  #isTelling = false

  constructor(session: Mux, { log, maxReached = MAX_REACHED }: { readonly log: Logger; readonly maxReached?: number }) {
    this.#session = session
    this.#log = log
    this.#maxReached = maxReached
  }

  add(tunnelId: string): void {
    this.#reached.delete(tunnelId)
    this.#reached.add(tunnelId)
    if (this.#reached.size <= this.#maxReached) return
    const [oldest] = this.#reached
    if (oldest !== undefined) this.ended(oldest)
  }

  /** A tunnel is not here any more, or not as it was. */
  ended(tunnelId: string): void {
    if (!this.#reached.delete(tunnelId)) return
    this.#gone.push(tunnelId)
    if (!this.#isTelling) void this.#tell()
  }

  async #tell(): Promise<void> {
    this.#isTelling = true
    // Tunnels that end in the same turn of the event loop, as with their session, join the message.
    await Promise.resolve()
    while (this.#gone.length > 0 && !this.#session.isClosed) {
      const message = { gone: this.#gone.splice(0, CONFIRMED_TOGETHER) }
      // An older node does not know this call; like every node, it soon looks up again what it has kept.
      await callNode(this.#session, message, CONFIRM_MS).catch((err: unknown) => {
        this.#log.debug({ err }, 'another node did not confirm that tunnels are gone')
      })
    }
    this.#gone = []
    this.#isTelling = false
  }
}

/** Reads the ids of the tunnels that a message says are gone; undefined when it is another message. */
export function readGone(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null || !('gone' in value) || !Array.isArray(value.gone)) return undefined
  const ids: readonly unknown[] = value.gone
  return ids.every((id) => typeof id === 'string') ? ids : undefined
}
