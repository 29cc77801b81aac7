/** Visitors who come all the time, in every way, so that a test sees whether any of them is not served. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from './until.ts'
import { type WayToAsk, waysToAskWeb, wayToAskTcp } from './ways-to-ask.ts'

/**
 * Pause between two requests of one visitor, in milliseconds: tests wait for leases and restarts most of the time, and
 * visitors without a pause would take more than the servers.
 */
const BETWEEN_MS = 60

/** Requests that every visitor must have had answered after a change before it counts as survived: over half a second. */
const ENOUGH = 10

/** Visitors of one agent at one node, each of which sends a request, waits for the answer and repeats. */
export class Visitors {
  /** Requests that failed, and whether they began after the latest change. */
  readonly failed: { readonly why: string; readonly epoch: number }[] = []
  readonly #served: number[] = []
  readonly #running: Promise<void>[]
  #epoch = 0
  #isStopped = false

  /** Its service answers `served`, and so does the echo behind the TCP address. */
  constructor({ web, tcp, ca }: { readonly web: string; readonly tcp: string; readonly ca: string }) {
    const ways = [...waysToAskWeb(web, ca), wayToAskTcp(tcp, 'served')]
    this.#running = ways.map((way) => this.#loop(way))
  }

  /** Requests that begin from now on must not fail. */
  changed(): void {
    this.#epoch++
  }

  /** Requests that failed though they began after the latest change. */
  get failedSince(): string[] {
    return this.failed.filter(({ epoch }) => epoch === this.#epoch).map(({ why }) => why)
  }

  /** Resolves when all have been served for a while; rejects when one was not. */
  async goOn(): Promise<void> {
    const before = [...this.#served]
    const isEnough = (): boolean => this.#served.every((served, i) => served >= (before[i] ?? 0) + ENOUGH)
    await until('visitors are served', () => this.failedSince.length > 0 || isEnough())
    assert.deepEqual(this.failedSince, [])
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
  }

  async #loop(way: WayToAsk): Promise<void> {
    const index = this.#served.push(0) - 1
    while (!this.#isStopped) {
      const epoch = this.#epoch
      const { status, text } = await way.ask().catch((error: Error) => ({ status: 0, text: error.message }))
      if (status === 200 && text === 'served') this.#served[index] = (this.#served[index] ?? 0) + 1
      else this.failed.push({ why: `${way.name}: ${status} ${text.slice(0, 300)}`, epoch })
      await pause(BETWEEN_MS)
    }
    way.close()
  }
}
