/** The legs at this data plane: at most one takes visitors of a session, and none outlives its session. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { DialFault, DialRequest } from '../model/dial.ts'
import type { AgentLeg } from './leg.ts'
import type { Elsewhere } from './ports.ts'

/** The highest number that a leg may have; with the first one an agent has 16 connections. */
export const MAX_LEG = 15

type LegsElsewhere = Pick<Elsewhere, 'mayHaveLeg' | 'legChanged'>

export class LegTable {
  readonly #elsewhere: LegsElsewhere
  /** Those that take visitors, by session. */
  readonly #bySession = new Map<string, AgentLeg>()
  /** Those that only keep the visitors that they had. */
  readonly #retired = new Set<AgentLeg>()
  /** Sessions whose legs are about to be let in; `isOver` when one ended meanwhile. */
  readonly #coming = new Set<{ readonly sessionId: string; isOver: boolean }>()
  #past = { bytesIn: 0, bytesOut: 0 }

  constructor(elsewhere: LegsElsewhere) {
    this.#elsewhere = elsewhere
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

  /** Whether this session is online, with this credential, and so may have a leg. Rejects when that cannot be known. */
  async mayCome(who: { readonly sessionId: string; readonly credentialId: string }): Promise<boolean> {
    const coming = { sessionId: who.sessionId, isOver: false }
    this.#coming.add(coming)
    try {
      return (await this.#elsewhere.mayHaveLeg(who)) && !coming.isOver
    } finally {
      this.#coming.delete(coming)
    }
  }

  /** Adds a leg. Another one of the same session is a lost connection of the same agent, and is ended. */
  add(leg: AgentLeg): void {
    const before = this.#bySession.get(leg.id)
    this.#bySession.set(leg.id, leg)
    before?.end('its agent came back on another connection')
    this.#elsewhere.legChanged(leg.id)
  }

  remove(leg: AgentLeg): void {
    this.#past.bytesIn += leg.bytesIn
    this.#past.bytesOut += leg.bytesOut
    this.#retired.delete(leg)
    this.#stopUsing(leg)
  }

  /** Reaches a tunnel of a session through its leg; undefined when it has none here. */
  open(sessionId: string, request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault> | undefined {
    return this.#bySession.get(sessionId)?.open(request)
  }

  /** The session is over. */
  end(sessionId: string, reason: string): void {
    for (const coming of this.#coming) if (coming.sessionId === sessionId) coming.isOver = true
    this.#bySession.get(sessionId)?.end(reason)
    // There are some only while this plane drains.
    for (const leg of [...this.#retired]) if (leg.id === sessionId) leg.end(reason)
  }

  /** Sends no more visitors to a leg, and asks its agent to close it after the last; false when it cannot be asked. */
  moveAway(leg: AgentLeg): boolean {
    // In this order, so that nothing follows what the agent is told.
    this.#stopUsing(leg)
    this.#retired.add(leg)
    return leg.tellToMove()
  }

  #stopUsing(leg: AgentLeg): void {
    if (this.#bySession.get(leg.id) !== leg) return
    this.#bySession.delete(leg.id)
    this.#elsewhere.legChanged(leg.id)
  }
}
