/**
 * Further connections of an agent's session, each to another data plane of the server, so that visitors who come in
 * there reach the agent at once and not through the plane that has the session.
 */
import { type Connections, MAX_CONNECTIONS } from './connections.ts'
import { AgentFault } from './fault.ts'
import type { Session } from './session.ts'
import type { Timers } from './timers.ts'

export interface LegRequest {
  /** From 1 on. */
  readonly number: number
  /** Data planes where another one would be of no use. */
  readonly heldPlanes: readonly string[]
  /** The server is about to close it. */
  readonly onMove: () => void
}

export interface LegsOptions {
  /** How many the session may have now, with the first one. */
  readonly connections: () => Connections
  readonly timers: Timers
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number
  /** Opens a further connection of the session; rejects with an `AgentFault`. */
  readonly connect: (leg: LegRequest) => Promise<Session>
}

/** How often to try in a row for each data plane: connections land at one of them by chance. */
const TRIES_PER_PLANE = 3

/** First and longest wait before trying again to reach the planes that are missing, in milliseconds. */
const FIRST_MS = 500
const LONGEST_MS = 300_000

/** A leg that lasted this long was no failure, in milliseconds. */
const STEADY_MS = 10_000

/** The server's answer at a data plane that has a connection of the session already. */
const HELD = 'ERR_NGROK_108'

export class Legs {
  readonly #options: LegsOptions
  /** The first connection of the session. */
  #first: Session | undefined
  /** By the data planes where they are. */
  readonly #legs = new Map<string, Session>()
  /** Those that only keep the visitors that they have. */
  readonly #leaving = new Set<Session>()
  /** Rounds in a row that did not lead to a leg that lasted. */
  #failures = 0
  #isTrying = false
  /** Cancels the next round. */
  #cancel: (() => void) | undefined

  constructor(options: LegsOptions) {
    this.#options = options
  }

  /** Whether there is a session to have further connections of. */
  get isActive(): boolean {
    return this.#first !== undefined
  }

  /** The session has this first connection, at which its tunnels are online. */
  follow(first: Session): void {
    this.#first = first
    // Where the session is, nobody needs another connection.
    const here = this.#legs.get(first.welcome.planeId)
    if (here) this.#leave(here)
    this.#plan()
  }

  /**
   * The session has left a node, and has no use for those that lead there. Each data plane asks to close its own, when it
   * sends no more visitors. Resolves when all are gone.
   */
  async leftNode(nodeId: string): Promise<void> {
    for (const [planeId, leg] of this.#legs) {
      if (leg.welcome.nodeId !== nodeId) continue
      this.#legs.delete(planeId)
      this.#leaving.add(leg)
    }
    const there = [...this.#leaving].filter(({ welcome }) => welcome.nodeId === nodeId)
    await Promise.all(there.map((leg) => leg.ended))
  }

  /** The session is over, and all its connections with it. */
  async close(): Promise<void> {
    this.#first = undefined
    this.#failures = 0
    this.#cancel?.()
    this.#cancel = undefined
    const all = [...this.#legs.values(), ...this.#leaving]
    this.#legs.clear()
    this.#leaving.clear()
    await Promise.all(all.map((leg) => leg.close()))
  }

  /** The session may have more than before, or fewer. */
  refit(): void {
    for (const leg of [...this.#legs.values()].reverse()) if (this.#missing < 0) this.#leave(leg)
    if (!this.#cancel) this.#plan()
  }

  /** The session is given up: each is closed after its last visitor. Resolves when all are gone. */
  async leave(): Promise<void> {
    this.#first = undefined
    for (const leg of this.#legs.values()) this.#leave(leg)
    await Promise.all([...this.#leaving].map((leg) => leg.ended))
  }

  /** This machine slept, or its network changed. */
  probe(timeoutMs: number): void {
    this.#failures = 0
    for (const leg of this.#legs.values()) leg.probe(timeoutMs)
    this.#plan()
  }

  /** How many are missing. */
  get #missing(): number {
    if (!this.#first) return 0
    const connections = this.#options.connections()
    const { planeCount } = this.#first.welcome
    const wanted = connections === 'auto' ? planeCount : Math.min(connections, planeCount)
    return Math.min(wanted, MAX_CONNECTIONS) - 1 - this.#legs.size
  }

  /** Tries again after a while, if any are missing. */
  #plan(): void {
    this.#cancel?.()
    this.#cancel = undefined
    if (this.#isTrying || this.#missing <= 0) return
    const waitMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#failures)
    const { timers, random } = this.#options
    // Half of each wait is random, so that the agents of a server that has just started do not all come at once.
    this.#cancel = timers.after(waitMs / 2 + (random() * waitMs) / 2, () => void this.#round())
  }

  async #round(): Promise<void> {
    this.#cancel = undefined
    this.#isTrying = true
    const tries = TRIES_PER_PLANE * (this.#first?.welcome.planeCount ?? 0)
    for (let tried = 0; tried < tries && this.#missing > 0; tried++) {
      if (!(await this.#try())) break
    }
    this.#isTrying = false
    this.#failures++
    this.#plan()
  }

  /** Opens one; false when another try would not help now. */
  async #try(): Promise<boolean> {
    const opened: { leg?: Session } = {}
    const heldPlanes = this.#heldPlanes()
    const onMove = (): void => {
      if (opened.leg) this.#leave(opened.leg)
    }
    try {
      const leg = await this.#options.connect({ number: this.#legs.size + 1, heldPlanes, onMove })
      opened.leg = leg
      this.#add(leg)
      return true
    } catch (error) {
      return error instanceof AgentFault && error.serverCode === HELD
    }
  }

  #heldPlanes(): string[] {
    return [this.#first?.welcome.planeId ?? '', ...this.#legs.keys()]
  }

  #add(leg: Session): void {
    const { planeId, clientId } = leg.welcome
    const isOurs = clientId === this.#first?.welcome.clientId && !this.#heldPlanes().includes(planeId)
    // The session may have ended meanwhile, or moved to where the leg is.
    if (!isOurs || leg.isEnded) {
      void leg.close()
      return
    }
    this.#legs.set(planeId, leg)
    const { timers } = this.#options
    const startedAt = timers.now()
    void leg.ended.then(() => {
      this.#leaving.delete(leg)
      if (this.#legs.get(planeId) !== leg) return
      this.#legs.delete(planeId)
      if (timers.now() - startedAt >= STEADY_MS) this.#failures = 0
      this.#plan()
    })
    if (leg.isAskedToMove) this.#leave(leg)
  }

  /** Closes a leg after its last visitor; another one is opened elsewhere. */
  #leave(leg: Session): void {
    const { planeId } = leg.welcome
    if (this.#legs.get(planeId) === leg) this.#legs.delete(planeId)
    this.#leaving.add(leg)
    this.#failures = 0
    void leg.leave()
    this.#plan()
  }
}
