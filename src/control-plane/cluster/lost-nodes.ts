/** Nodes whose leases are lost (D56): which of their places are free, as they say themselves, or are too long silent to say. */
import type { AddressHolder, ServedAnswer } from '../../link/planes/ask-node.ts'
import type { OtherNode } from '../../link/planes/plane-calls.ts'
import { AskedTogether } from '../store/asked-together.ts'

interface LostNodesOptions {
  /** Asks a node which of these places it still serves; never rejects. */
  readonly ask: (node: OtherNode, holders: readonly AddressHolder[]) => Promise<ServedAnswer>
  /** A clock that never jumps, in milliseconds. */
  readonly now: () => number
}

/** A holder whose node is lost. */
type LostHolder = AddressHolder & { readonly nodeId: string }

/** How long a lost node must be silent before what it had is free, in milliseconds. */
export const SILENT_MS = 60_000

interface LostNode {
  readonly node: OtherNode
  /** When it was found lost, or answered last. */
  heardAt: number
  /** Whether the last answer was that nothing is there. */
  isRefused: boolean
  /** Whether each of these holders still has its place. */
  readonly asked: AskedTogether<AddressHolder, boolean>
  looking: Promise<void> | undefined
}

export class LostNodes {
  readonly #options: LostNodesOptions
  readonly #lost = new Map<string, LostNode>()

  constructor(options: LostNodesOptions) {
    this.#options = options
  }

  /** The lost nodes, as others may still reach them. */
  get all(): readonly OtherNode[] {
    return [...this.#lost.values()].map(({ node }) => node)
  }

  has(nodeId: string): boolean {
    return this.#lost.has(nodeId)
  }

  /** Takes the list of lost nodes, and asks each for a sign of life. */
  use(nodes: readonly OtherNode[]): void {
    const ids = new Set(nodes.map(({ nodeId }) => nodeId))
    for (const id of this.#lost.keys()) if (!ids.has(id)) this.#lost.delete(id)
    for (const node of nodes) {
      const lost = this.#lost.get(node.nodeId) ?? this.#found(node)
      lost.looking ??= this.#ask(lost, []).then(() => {
        lost.looking = undefined
      })
    }
  }

  /** Whether a node is gone for good: nothing that it had counts any more. */
  isGone(nodeId: string): boolean {
    const lost = this.#lost.get(nodeId)
    return lost !== undefined && this.#isOver(lost)
  }

  /** Whether all these holders have their places no longer. Asked anew each time: a node may have come back. */
  async areFree(holders: readonly LostHolder[]): Promise<boolean> {
    const held = await Promise.all(
      holders.map(
        async ({ nodeId, place, tunnelId, sessionId }) =>
          // One that this node does not know to be lost may be alive by now.
          (await this.#lost.get(nodeId)?.asked.ask({ place, tunnelId, sessionId })) ?? true,
      ),
    )
    return !held.includes(true)
  }

  #found(node: OtherNode): LostNode {
    const lost: LostNode = {
      ...{ node, heardAt: this.#options.now(), isRefused: false, looking: undefined },
      asked: new AskedTogether(async (holders) => {
        const answer = await this.#ask(lost, holders)
        return (holder) => {
          if (typeof answer === 'string') return !this.#isOver(lost)
          return answer[holders.indexOf(holder)] !== false
        }
      }),
    }
    this.#lost.set(node.nodeId, lost)
    return lost
  }

  async #ask(lost: LostNode, holders: readonly AddressHolder[]): Promise<ServedAnswer> {
    const answer = await this.#options.ask(lost.node, holders)
    lost.isRefused = answer === 'refused'
    if (answer !== 'refused' && answer !== 'silent') lost.heardAt = this.#options.now()
    return answer
  }

  #isOver({ isRefused, heardAt }: LostNode): boolean {
    return isRefused || this.#options.now() - heardAt >= SILENT_MS
  }
}
