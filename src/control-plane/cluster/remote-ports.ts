/** Ports of tunnels at other nodes. They must be open here before a visitor comes (D60), so they follow the change feed. */

import type { PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { LookUps } from './answer-lookups.ts'
import { PORT_CHANGED } from './write-online-rows.ts'

type PortChange = Parameters<PlaneCalls['distantPorts']>[0]

export class DistantPorts implements Followed {
  readonly #lookUps: LookUps
  readonly #send: (change: PortChange) => Promise<unknown>

  constructor(lookUps: LookUps, send: (change: PortChange) => Promise<unknown>) {
    this.#lookUps = lookUps
    this.#send = send
  }

  async load(): Promise<void> {
    const only: string[] = []
    for await (const taken of this.#lookUps.ports()) {
      only.push(...taken.map(({ place }) => place))
      await this.#send({ taken, free: [] })
    }
    await this.#send({ taken: [], free: [], only })
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const ports = [...new Set(changes.filter(({ kind }) => kind === PORT_CHANGED).map(({ id }) => Number(id)))]
    if (ports.length === 0) return
    const taken = await this.#lookUps.portPlaces(ports)
    const there = new Set(taken.map(({ place }) => place))
    const free = ports.map((port) => `:${port}`).filter((place) => !there.has(place))
    await this.#send({ taken, free })
  }
}
