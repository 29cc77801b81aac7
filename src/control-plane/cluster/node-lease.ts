/** The lease of this node (D56): while it runs, what is online here counts. */
import type { ControlTools } from '../store/control-tools.ts'
import type { LiveNode, StoredNode } from '../store/online-rows.ts'

/** What a node says of itself with each renewal. */
export type NodeFacts = StoredNode

interface NodeLeaseOptions extends Pick<ControlTools, 'store' | 'log'> {
  /** What this node is at the moment. */
  readonly facts: () => NodeFacts
  /**
   * Called when the lease has begun or had expired: others keep what they hold by now, and the rest must be announced.
   * Also called when another database server has taken over, which may lack the last writes.
   */
  readonly onBegun: () => void
  /**
   * Every node whose lease runs, this one too, and those that have lost theirs. Unless `isSettled`, others may be about to renew
   * theirs.
   */
  readonly onNodes: (
    nodes: readonly LiveNode[],
    state: { readonly lost: readonly StoredNode[]; readonly isSettled: boolean },
  ) => void
  /** Whether a node that has lost its lease is gone for good. */
  readonly isGone: (nodeId: string) => boolean
  /** Instead of `RENEW_MS`, for tests. */
  readonly renewMs?: number
}

/** How long a lease lasts, in milliseconds, by the database's clock: the clocks of nodes may differ. */
export const LEASE_MS = 10_000

/** How often it is renewed, in milliseconds. */
export const RENEW_MS = 2000

/** How long to wait after a renewal that failed, in milliseconds: a node that was frozen fails once. */
const AGAIN_MS = 500

/**
 * When the list of nodes is older than this, in milliseconds, leases that have run out since may have done so because the
 * database was away. Other nodes may have renewed their leases up to `RENEW_MS` before the list was read, and lost them that
 * much sooner.
 */
const AWAY_MS = LEASE_MS / 2

/** How long all nodes have to renew their leases once the database is back, in milliseconds. */
const SETTLE_MS = 5000

/** How long agents may take to come back to a node that stood still, in milliseconds: one of them may just be connecting. */
export const RETURN_MS = 30_000

/** Rows of a dead node that are removed in one transaction, so that no other writer waits for long. */
export const SWEPT_TOGETHER = 1000

export class NodeLease {
  readonly #options: NodeLeaseOptions
  readonly #renewMs: number
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #sweeping: Promise<void> | undefined
  #isAgain = false
  #isStopped = false
  #isAway = false
  // Times by a clock that never jumps, undefined before the first.
  /** When the last renewal failed. */
  #failedAt: number | undefined
  /** When the list of nodes was last read, and handed on. */
  #listedAt: number | undefined
  /** Until then leases of other nodes may have expired because the database was away. */
  #settledAt = 0
  /** When this node may begin to remove the rows of dead ones. */
  #sweepsAt = 0
  /** When it was last renewed, and when it was last taken again after it was lost. */
  #renewedAt: number | undefined
  #takenAgainAt = Number.NEGATIVE_INFINITY
  /** The database server that was last read from; undefined before that. */
  #server: string | undefined

  constructor(options: NodeLeaseOptions) {
    this.#options = options
    this.#renewMs = options.renewMs ?? RENEW_MS
  }

  /** How long ago it was renewed, in milliseconds; never less than by the database's clock. */
  get ageMs(): number {
    return this.#renewedAt === undefined ? Number.POSITIVE_INFINITY : performance.now() - this.#renewedAt
  }

  /** Whether it is or was lost so lately that agents of this node, who found it silent, may still be on their way back. */
  get isShaken(): boolean {
    const isLost = this.#renewedAt !== undefined && this.ageMs >= LEASE_MS
    return isLost || performance.now() - this.#takenAgainAt < RETURN_MS
  }

  get #isListOld(): boolean {
    return this.#listedAt !== undefined && performance.now() - this.#listedAt > AWAY_MS
  }

  /** Takes the lease; rejects when the database is down. */
  async start(): Promise<void> {
    await this.#renew()
    this.#later()
  }

  /** Renews it now, since facts that others read have changed or it may have expired; resolves with whether that worked. */
  async renew(): Promise<boolean> {
    if (this.#isStopped) return false
    if (this.#running) this.#isAgain = true
    this.#running ??= this.#untilRenewed().finally(() => {
      this.#running = undefined
    })
    await this.#running
    return !this.#isAway && !this.#isStopped
  }

  /** Makes sure that the list of nodes is not from before the database was away; resolves with whether that worked. */
  async catchUp(): Promise<boolean> {
    if (!this.#isListOld || this.#isStopped) return true
    const hasJustFailed = this.#failedAt !== undefined && performance.now() - this.#failedAt < AGAIN_MS
    if (!this.#running && hasJustFailed) return false
    await (this.#running ?? this.renew())
    return !this.#isListOld
  }

  /** Stops renewing it: another process of this node does so from now on. */
  async pause(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await Promise.all([this.#running, this.#sweeping])
  }

  /** Gives it up: nothing that is online here counts from now on. */
  async stop(): Promise<void> {
    await this.pause()
    const { store, facts, log } = this.#options
    const { id } = facts()
    try {
      await store.write((writer) => writer.online.leave(id))
      while (await this.#sweep(id));
    } catch (err) {
      log.warn({ err }, 'cannot give up the lease of this node; it expires by itself')
    }
  }

  #later(): void {
    if (this.#isStopped) return
    const ms = this.#isAway ? Math.min(AGAIN_MS, this.#renewMs) : this.#renewMs
    this.#timer = setTimeout(() => void this.renew().finally(() => this.#later()), ms).unref()
  }

  async #untilRenewed(): Promise<void> {
    do {
      this.#isAgain = false
      try {
        await this.#renew()
        if (this.#isAway) this.#options.log.info('database is back; lease of this node renewed')
        this.#isAway = false
      } catch (err) {
        if (!this.#isAway) this.#options.log.warn({ err }, 'cannot renew the lease of this node; retrying')
        this.#isAway = true
        this.#failedAt = performance.now()
      }
    } while (this.#isAgain && !this.#isStopped)
  }

  async #renew(): Promise<void> {
    const { store, facts, onBegun, onNodes, isGone } = this.#options
    const asked = performance.now()
    // In one statement if it runs: a transaction would lock the row until this process goes on, and `LeaseKeeper` would wait.
    const hadRun =
      (await store.read(({ online }) => online.prolong(facts(), LEASE_MS))) ||
      (await store.write((writer) => writer.online.renew(facts(), LEASE_MS)))
    if (!hadRun && this.#renewedAt !== undefined) this.#takenAgainAt = performance.now()
    this.#renewedAt = asked
    if (!hadRun) onBegun()
    const { nodes, dead, server } = await store.read(async ({ online }) => ({
      nodes: await online.nodes(),
      dead: await online.deadNodes(),
      server: await online.server(),
    }))
    if (this.#isStopped) return
    const isOtherServer = this.#server !== undefined && this.#server !== server
    if (hadRun && isOtherServer) onBegun()
    this.#server = server
    const now = performance.now()
    if (isOtherServer || this.#isListOld) this.#settledAt = now + SETTLE_MS
    // A node that has just started may have waited for the database, as the others did.
    if (this.#listedAt === undefined) this.#sweepsAt = now + SETTLE_MS
    onNodes(nodes, { lost: dead.filter(({ hasLeft }) => !hasLeft), isSettled: now >= this.#settledAt })
    this.#listedAt = asked
    if (now < Math.max(this.#settledAt, this.#sweepsAt)) return
    // One node sweeps for all; a dead one would not be in the list.
    const isSweeper = nodes.every(({ id }) => id >= facts().id)
    const gone = dead.flatMap(({ id, hasLeft }) => (hasLeft || isGone(id) ? [id] : []))
    if (!isSweeper || gone.length === 0) return
    this.#sweeping ??= this.#sweepDead(gone).finally(() => {
      this.#sweeping = undefined
    })
  }

  /** Goes on beside renewals, since a node may have left a million rows. */
  async #sweepDead(nodeIds: readonly string[]): Promise<void> {
    try {
      for (const id of nodeIds) while (!this.#isStopped && (await this.#sweep(id)));
    } catch (err) {
      this.#options.log.debug({ err }, 'cannot remove the rows of a dead node; trying again after the next renewal')
    }
  }

  /** Removes a few rows of what a node has left; resolves with whether there may be more. */
  async #sweep(nodeId: string): Promise<boolean> {
    const swept = await this.#options.store.write((writer) => writer.online.sweep(nodeId, SWEPT_TOGETHER))
    return swept > 0
  }
}
