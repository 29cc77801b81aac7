/** The legs at this data plane: at most one takes visitors for a session, and none outlives its session. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Control } from '../../link/planes/control-link.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'
import type { AgentLeg } from './leg.ts'
import type { Registry } from './registry.ts'

interface LegTableOptions {
  readonly control: Control
  readonly registry: Pick<Registry, 'remote'>
}

/** The highest number of a leg; with its first connection an agent has at most 16. */
export const MAX_LEG = 15

/** How long an agent waits until it is known whether its session is online, in milliseconds. */
const ASK_MS = 3000

export class LegTable {
  readonly #options: LegTableOptions
  /** Legs that take visitors, by session. */
  readonly #bySession = new Map<string, AgentLeg>()
  /** Legs that only keep their present visitors. */
  readonly #retired = new Set<AgentLeg>()
  /** Sessions whose legs are being checked; `isOver` is set when the session ends meanwhile. */
  readonly #coming = new Set<{ readonly sessionId: string; isOver: boolean }>()
  #past = { bytesIn: 0, bytesOut: 0 }

  constructor(options: LegTableOptions) {
    this.#options = options
  }

  /** Ids of the sessions that have a leg here. */
  get sessionIds(): readonly string[] {
    return [...this.#bySession.keys()]
  }

  get all(): readonly AgentLeg[] {
    return [...this.#bySession.values(), ...this.#retired]
  }

  /** Numbers for metrics; bytes are those of all legs since the start. */
  get load(): { connections: number; bytesIn: number; bytesOut: number } {
    const totals = { connections: 0, ...this.#past }
    for (const { connections, bytesIn, bytesOut } of this.all) {
      totals.connections += connections
      totals.bytesIn += bytesIn
      totals.bytesOut += bytesOut
    }
    return totals
  }

  /** Whether a session with this credential is online, so that it may have a leg. Rejects when that is not known. */
  async mayCome(who: { readonly sessionId: string; readonly credentialId: string }): Promise<boolean> {
    const coming = { sessionId: who.sessionId, isOver: false }
    this.#coming.add(coming)
    try {
      return (await this.#options.control.ask('mayHaveLeg', who, { withinMs: ASK_MS })) && !coming.isOver
    } finally {
      this.#coming.delete(coming)
    }
  }

  /** Adds a leg. An earlier leg of the same session is a lost connection of the same agent, and is ended. */
  add(leg: AgentLeg): void {
    const before = this.#bySession.get(leg.id)
    this.#bySession.set(leg.id, leg)
    before?.end('its agent reconnected on another connection')
    this.#options.registry.remote.legChanged(leg.id)
  }

  remove(leg: AgentLeg): void {
    this.#past.bytesIn += leg.bytesIn
    this.#past.bytesOut += leg.bytesOut
    this.#retired.delete(leg)
    this.#stopUsing(leg)
  }

  /** Dials a tunnel of a session through its leg; undefined when it has none here. */
  open(sessionId: string, request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault> | undefined {
    return this.#bySession.get(sessionId)?.open(request)
  }

  /** Ends the legs of a session that is over. */
  end(sessionId: string, reason: string): void {
    for (const coming of this.#coming) if (coming.sessionId === sessionId) coming.isOver = true
    this.#bySession.get(sessionId)?.end(reason)
    // Retired legs exist only while this plane drains.
    for (const leg of [...this.#retired]) if (leg.id === sessionId) leg.end(reason)
  }

  /** Sends no more visitors to a leg, and asks its agent to close it after the last; false when it cannot be asked. */
  moveAway(leg: AgentLeg): boolean {
    // In this order, so that no visitor follows the message to the agent.
    this.#stopUsing(leg)
    this.#retired.add(leg)
    return leg.tellToMove()
  }

  #stopUsing(leg: AgentLeg): void {
    if (this.#bySession.get(leg.id) !== leg) return
    this.#bySession.delete(leg.id)
    this.#options.registry.remote.legChanged(leg.id)
  }
}
