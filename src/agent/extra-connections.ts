/** Further connections of an agent's session ("legs"), each to another data plane of the server. */

import { AgentFault } from './agent-fault.ts'
import type { Session } from './session.ts'
import { type Connections, MAX_CONNECTIONS } from './session-connections.ts'
import type { Timers } from './timers.ts'

export interface LegRequest {
  /** From 1 on. */
  readonly number: number
  /** Data planes that have a connection already. */
  readonly heldPlanes: readonly string[]
  /** The server is about to close it. */
  readonly onMove: () => void
}

interface LegsOptions {
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

/** A leg that lasted this long resets the count of failures, in milliseconds. */
const STEADY_MS = 10_000

/** The server's refusal at a data plane that already has a connection of the session. */
const HELD = 'ERR_NGROK_108'

/** Over its own leg a data plane sends visitors straight to the agent, and not through the plane that has the session. */
export class Legs {
  readonly #options: LegsOptions
  /** The first connection of the session. */
  #first: Session | undefined
  /** By data plane. */
  readonly #legs = new Map<string, Session>()
  /** Legs that only keep their visitors. */
  readonly #leaving = new Set<Session>()
  /** Rounds in a row that did not lead to a leg that lasted. */
  #failures = 0
  #isTrying = false
  /** Cancels the next round. */
  #cancel: (() => void) | undefined

  constructor(options: LegsOptions) {
    this.#options = options
  }

  /** Whether there is a session that can have legs. */
  get isActive(): boolean {
    return this.#first !== undefined
  }

  /** The session has this first connection, at which its tunnels are online. */
  follow(first: Session): void {
    this.#first = first
    // The plane that has the session needs no leg.
    const here = this.#legs.get(first.welcome.planeId)
    if (here) this.#leave(here)
    this.#plan()
  }

  /**
   * The session has left a node, so its legs there are of no use. Each data plane asks to close its own once it
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

  /** Called when the session may have more connections than before, or fewer. */
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

  /** How many legs are missing; negative if there are too many. */
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

  /** Opens one leg; false if another try would not help now. */
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
