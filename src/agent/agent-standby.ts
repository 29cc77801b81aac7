/** A spare connection of an agent to a node other than that of its session, ready to take over when the session is lost. */
import type { Session } from './session.ts'
import type { Timers } from './timers.ts'

interface StandbyOptions {
  readonly timers: Timers
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number
  /** Whether there should be one now: the session is online, and the server has other nodes. */
  readonly isWanted: () => boolean
  /** The id of the session, and of its node, where a standby would be useless. */
  readonly sessionId: () => string
  readonly notAt: () => string
  /** Connects to another node; rejects if none accepts. `onMove` is called when that node is about to stop. */
  readonly connect: (onMove: () => void) => Promise<Session>
  readonly onReady: (session: Session) => void
}

/**
 * First and longest wait before it connects, in milliseconds. After a node's death all its agents want a new standby, but
 * only their tunnels are urgent.
 */
const FIRST_MS = 5000
const LONGEST_MS = 300_000

/** A standby that lasted this long resets the count of failures, in milliseconds. */
const STEADY_MS = 10_000

/** Carries nothing until the session is lost. The session then continues over this connection, without another handshake. */
export class Standby {
  readonly #options: StandbyOptions
  #ready: Session | undefined
  #failures = 0
  #isTrying = false
  #isClosed = false
  /** Cancels the next attempt. */
  #cancel: (() => void) | undefined

  constructor(options: StandbyOptions) {
    this.#options = options
  }

  get isReady(): boolean {
    return this.#ready !== undefined
  }

  /** Called when something that decides whether and where it should be may have changed. */
  check(): void {
    if (this.#ready && !this.#isUsable(this.#ready)) this.#drop(this.#ready)
    if (!this.#cancel) this.#plan()
  }

  /** The nodes or this machine's network have changed: what failed before may work now. */
  hasNews(): void {
    this.#failures = 0
    this.#plan()
  }

  /** Hands the standby over to become a session, if there is one. */
  take(): Session | undefined {
    const session = this.#ready
    this.#ready = undefined
    return session
  }

  /** This machine slept, or its network changed. */
  probe(timeoutMs: number): void {
    this.#ready?.probe(timeoutMs)
    this.hasNews()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel?.()
    await this.take()?.close()
  }

  /** Connects after a while, if a standby is wanted and missing. */
  #plan(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const { timers, random, isWanted } = this.#options
    if (this.#isClosed || this.#isTrying || this.#ready || !isWanted()) return
    const waitMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#failures)
    // Half of each wait is random, so that not all agents of a server come at once.
    this.#cancel = timers.after(waitMs / 2 + (random() * waitMs) / 2, () => void this.#try())
  }

  async #try(): Promise<void> {
    const { connect, isWanted } = this.#options
    this.#cancel = undefined
    if (!isWanted()) return
    this.#isTrying = true
    this.#failures++
    const opened: { session?: Session } = {}
    const onMove = (): void => {
      if (opened.session === this.#ready && this.#ready) this.#drop(this.#ready)
    }
    try {
      opened.session = await connect(onMove)
      this.#use(opened.session)
    } catch {
      // The next attempt comes later.
    }
    this.#isTrying = false
    this.#plan()
  }

  #use(session: Session): void {
    const { timers, onReady } = this.#options
    if (this.#isClosed || !this.#isUsable(session)) {
      void session.close()
      return
    }
    this.#ready = session
    onReady(session)
    const startedAt = timers.now()
    void session.ended.then(() => {
      if (timers.now() - startedAt >= STEADY_MS) this.#failures = 0
      if (this.#ready !== session) return
      this.#ready = undefined
      this.#plan()
    })
  }

  #isUsable(session: Session): boolean {
    const { isWanted, sessionId, notAt } = this.#options
    // An older server has begun another session instead.
    const { isStandby, clientId, nodeId } = session.welcome
    return isWanted() && isStandby && clientId === sessionId() && nodeId !== notAt() && !session.isAskedToMove
  }

  #drop(session: Session): void {
    void session.close()
    if (this.#ready !== session) return
    this.#ready = undefined
    this.#failures = 0
    this.#plan()
  }
}
