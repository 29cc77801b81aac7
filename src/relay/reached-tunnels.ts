/**
 * The tunnels that another node has reached here. When one goes the other node is told, since it may have connections to
 * it that it keeps for later visitors, whom it would let in by rules that no longer count.
 */
import type { Logger } from '../lib/log/log.ts'
import type { Mux } from '../wire/mux.ts'
import { callNode } from './node-calls.ts'

/** What the other node is told. */
export interface GoneTunnels {
  /** Ids. */
  readonly gone: readonly string[]
}

/** How many tunnels are noted; when there are more, those that were reached first are told to be gone. */
const MAX_REACHED = 100_000

/** Ids in one message. */
const TOLD_TOGETHER = 10_000

/** How long the other node may take to confirm it, in milliseconds. */
const CONFIRM_MS = 5000

export class TunnelsReached {
  readonly #session: Mux
  readonly #log: Logger
  readonly #maxReached: number
  /** Those that were reached last at the end. */
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
    // Those that go in the same turn of the event loop, as with their session, go along.
    await Promise.resolve()
    while (this.#gone.length > 0 && !this.#session.isClosed) {
      const message: GoneTunnels = { gone: this.#gone.splice(0, TOLD_TOGETHER) }
      // One that does not know this call looks up soon what it has kept, as every node does.
      await callNode(this.#session, message, CONFIRM_MS).catch((err: unknown) => {
        this.#log.debug({ err }, 'another node does not confirm that tunnels are gone')
      })
    }
    this.#gone = []
    this.#isTelling = false
  }
}

/** What another node told; undefined when it is something else. */
export function readGone(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null || !('gone' in value) || !Array.isArray(value.gone)) return undefined
  const ids: readonly unknown[] = value.gone
  return ids.every((id) => typeof id === 'string') ? ids : undefined
}
