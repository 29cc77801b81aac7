/** Dials tunnels whose sessions other nodes hold, and calls those nodes. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { inTime } from '../../lib/in-time.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { buildPreamble } from './dial-header.ts'
import { LinkedNode, type LinkedNodeOptions } from './linked-node.ts'
import type { NodePlane } from './node-identity.ts'
import type { RelayLink } from './relay-link.ts'

export interface NodeLinksOptions extends Omit<LinkedNodeOptions, 'nodeId' | 'connectMs'> {
  /** Instead of `DIAL_MS`, for tests. */
  readonly dialMs?: number
}

/** D57: how long to reach a tunnel at another node may take in all, in milliseconds. */
const DIAL_MS = 3000

/** Most tries of a dial: it is repeated once, on a new connection, when its link broke before the answer. */
const ATTEMPTS = 2

/**
 * Pause before a call that broke is sent again, in milliseconds: so short that a node that was found dead is not connected to
 * once more, see `LinkedNode`.
 */
const AGAIN_MS = 50

export class NodeLinks {
  readonly #options: NodeLinksOptions
  readonly #dialMs: number
  readonly #nodes = new Map<string, LinkedNode>()
  /** Dials of tunnels at other nodes. */
  dialled = 0
  /** Dials that failed because the node could not be reached. */
  unreached = 0
  #isClosed = false

  constructor(options: NodeLinksOptions) {
    this.#options = options
    this.#dialMs = options.dialMs ?? DIAL_MS
  }

  /** Open streams to other nodes. */
  get streams(): number {
    return [...this.#nodes.values()].reduce((sum, { streams }) => sum + streams, 0)
  }

  /** Links that take new streams. */
  get links(): number {
    return [...this.#nodes.values()].reduce((sum, { links }) => sum + links, 0)
  }

  /**
   * Dials a tunnel at a plane of another node. Fails as `unreachable` when the node cannot be reached, so that the caller may
   * look up where the tunnel is now. Never rejects.
   */
  async dial({ nodeId, planeId }: NodePlane, request: DialRequest): Promise<ByteStream | DialFault> {
    this.dialled++
    const head = buildPreamble(request)
    if (!head) return new DialFault('refused', 'the request is too long to be relayed')
    const deadline = performance.now() + this.#dialMs
    for (let attempt = 1; ; attempt++) {
      const reached = await this.#reach(nodeId, planeId, deadline)
      if (reached instanceof Error) {
        this.unreached++
        return new DialFault('unreachable', reached.message, { cause: reached })
      }
      const result = await dialOn(reached, head, deadline)
      const isLost = result instanceof DialFault && reached.session.isClosed && result.reason === 'unreachable'
      // Nothing was sent to the service yet, so a retry is safe.
      if (isLost && attempt < ATTEMPTS && !this.#isClosed) continue
      if (result instanceof DialFault && result.reason === 'unreachable') this.unreached++
      return result
    }
  }

  /**
   * Calls another node, through any of its data planes; rejects with a `LinkFault`. A call that broke is sent again: the control
   * process there was replaced, or a data plane that passed the call on has drained.
   */
  async call(nodeId: string, value: unknown, { withinMs }: { readonly withinMs: number }): Promise<unknown> {
    const deadline = performance.now() + withinMs
    for (let broken: LinkFault | undefined; ; await pause(AGAIN_MS)) {
      const reached = await this.#reach(nodeId, undefined, deadline)
      if (reached instanceof Error) throw broken ?? new LinkFault('unreachable', reached.message, { cause: reached })
      try {
        return await reached.call(value, left(deadline))
      } catch (error) {
        if (!(error instanceof LinkFault && error.reason === 'closed') || left(deadline) <= AGAIN_MS) throw error
        broken = error
      }
    }
  }

  /** Forgets a node that is gone: its links take no new streams, and each closes with its last open stream. */
  forget(nodeId: string): void {
    this.#nodes.get(nodeId)?.retire()
    this.#nodes.delete(nodeId)
  }

  /** Closes all links and their open streams. */
  close(): void {
    this.#isClosed = true
    for (const node of this.#nodes.values()) node.close()
  }

  async #reach(nodeId: string, planeId: string | undefined, deadline: number): Promise<RelayLink | Error> {
    const node = this.#nodeOf(nodeId)
    if (!node) return new Error(`the node ${nodeId} is not known`)
    const reached = node.reach(planeId)
    if (!(reached instanceof Promise)) return reached
    const late = (): Error => new Error(`the node ${nodeId} cannot be reached in time`)
    return inTime(reached, left(deadline), late).catch((error: Error) => error)
  }

  #nodeOf(nodeId: string): LinkedNode | undefined {
    const known = this.#nodes.get(nodeId)
    if (known) return known
    if (this.#isClosed || !this.#options.addressOf(nodeId)) return undefined
    const node = new LinkedNode({ ...this.#options, nodeId, connectMs: this.#dialMs })
    this.#nodes.set(nodeId, node)
    return node
  }
}

async function dialOn(link: RelayLink, head: Buffer, deadline: number): Promise<ByteStream | DialFault> {
  const askedAt = performance.now()
  const result = await link.dial(head, { withinMs: left(deadline) })
  const isTimeout = result instanceof DialFault && result.reason === 'timeout'
  // A live node has answered a ping meanwhile.
  if (!isTimeout || link.session.silenceMs < performance.now() - askedAt) return result
  return new DialFault('unreachable', result.message, { cause: result })
}

function left(deadline: number): number {
  return Math.max(0, Math.round(deadline - performance.now()))
}
