/** Visitors that request every address at every open node, each over a new connection. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../fuzz/hostile-documents.ts'
import { type Address, ask, isFrom } from './node-addresses.ts'
import type { FailedAsk } from './nodes-verdict.ts'
import type { NodesWorld, RestartedNode } from './nodes-world.ts'

/** Pause between two visits of one address at one node, in milliseconds. */
const BETWEEN_MS = { least: 500, most: 2000 }

/** Maximum concurrent visits of one address at one node: visitors do not wait for earlier ones. */
const MAX_AT_ONCE = 8

export class NodeVisitors {
  readonly failed: FailedAsk[] = []
  done = 0
  readonly #world: NodesWorld
  readonly #random: Random
  readonly #running: Promise<void>[] = []
  #isOver = false

  constructor(world: NodesWorld, addresses: readonly Address[], random: Random) {
    this.#world = world
    this.#random = random
    for (const node of world.nodes) for (const address of addresses) this.#running.push(this.#visit(node, address))
  }

  /** Starts no more visits; resolves when all have been answered or given up. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  async #visit(node: RestartedNode, address: Address): Promise<void> {
    const asked = new Set<Promise<void>>()
    while (!this.#isOver) {
      await pause(BETWEEN_MS.least + this.#random(BETWEEN_MS.most - BETWEEN_MS.least))
      if (!node.isOpen || asked.size >= MAX_AT_ONCE || this.#isOver) continue
      const asking = this.#ask(node, address).finally(() => asked.delete(asking))
      asked.add(asking)
    }
    await Promise.all(asked)
  }

  async #ask(node: RestartedNode, { name, url, form }: Address): Promise<void> {
    const began = Date.now()
    const heard = await ask(node, url, this.#world.cluster.ca)
    this.done++
    if (!isFrom(heard, name)) {
      this.failed.push({ address: name, form, node: node.name, began, ended: Date.now(), ...heard })
    }
  }
}
