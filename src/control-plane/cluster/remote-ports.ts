/** Keeps a data plane informed of the ports of tunnels at other nodes. */
import type { PlaneCalls } from '../../link/planes/plane-calls.ts'
import { changedIds } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { LookUps } from './answer-lookups.ts'
import { PORT_CHANGED } from './write-online-rows.ts'

type PortChange = Parameters<PlaneCalls['distantPorts']>[0]

/**
 * The ports must be open here before a visitor comes (D60), so they follow the change feed.
 *
 * Not a `mirror`: thousands of ports are sent page by page, each with its configuration, and none is kept here.
 */
export function mirrorPorts(lookUps: LookUps, send: (change: PortChange) => Promise<unknown>): Followed {
  return {
    async load() {
      const only: string[] = []
      for await (const taken of lookUps.ports()) {
        only.push(...taken.map(({ place }) => place))
        await send({ taken, free: [] })
      }
      await send({ taken: [], free: [], only })
    },
    async apply(changes) {
      const ports = changedIds(changes, [PORT_CHANGED])
      if (ports.length === 0) return
      const taken = await lookUps.portAddresses(ports.map(Number))
      const there = new Set(taken.map(({ place }) => place))
      await send({ taken, free: ports.map((port) => `:${port}`).filter((place) => !there.has(place)) })
    },
  }
}
