/** Answers the look-ups of data planes for names, ports and groups at other nodes, from the rows of all nodes. */

import type { PlaneCalls, RemoteAddress, RemoteTunnel } from '../../link/planes/plane-calls.ts'
import { type EdgeConfig, httpVersionOf } from '../../model/edge-config.ts'
import { labelTexts } from '../../model/label-groups.ts'
import { AskedTogether } from '../store/asked-together.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { changedIds } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import { gatherMs } from '../store/gather-time.ts'
import type { OnlineReader } from '../store/online-reader.ts'
import type { StoredHeldAddress, StoredOnlineTunnel } from '../store/online-rows.ts'
import { addressContext, type KeptTunnel, PORT_CHANGED } from './write-online-rows.ts'

/** How many tunnels of one group a look-up returns; a visitor needs one. */
const MAX_MEMBERS = 1000

/** How long a look-up may take, in milliseconds: a visitor waits for it. */
const LOOK_UP_MS = 2500

/** The longest pause between two queries for names, in milliseconds; shorter than for agents, since visitors wait. */
const APART_MS = 20

/** How many ports are read at once. */
const PORTS_TOGETHER = 1000

interface LookUpsOptions extends Pick<ControlTools, 'store' | 'sealer' | 'log'> {
  readonly nodeId: string
  /** Makes sure that data planes know these nodes, and which nodes are unsure, before they hear the answer. */
  readonly introduce: (nodeIds: ReadonlySet<string>) => Promise<void>
}

export class LookUps {
  readonly #options: LookUpsOptions
  readonly #addresses: AskedTogether<readonly string[], readonly RemoteAddress[]>

  constructor(options: LookUpsOptions) {
    this.#options = options
    this.#addresses = new AskedTogether((asked) => this.#addressesOf(asked), {
      apartMs: (together) => gatherMs(together, APART_MS),
    })
  }

  addresses(addresses: readonly string[]): Promise<readonly RemoteAddress[]> {
    return this.#addresses.ask(addresses)
  }

  async group(labels: Readonly<Record<string, string>>): Promise<readonly RemoteTunnel[]> {
    const pairs = labelTexts(labels)
    const found = await this.#read((online) => online.tunnelsWith(pairs, MAX_MEMBERS))
    const others = found.flatMap((row) => (row.nodeId === this.#options.nodeId ? [] : [remoteTunnel(row)]))
    await this.#options.introduce(new Set(others.map(({ nodeId }) => nodeId)))
    return others
  }

  /**
   * Keeps a data plane informed of the ports of tunnels at other nodes. They must be open here before a visitor comes (D60), so
   * they follow the change feed.
   *
   * Not a `mirror`: thousands of ports are sent page by page, each with its configuration, and none is kept here.
   */
  ports(send: (change: Parameters<PlaneCalls['distantPorts']>[0]) => Promise<unknown>): Followed {
    return {
      load: async () => {
        const only: string[] = []
        for await (const taken of this.#allPorts()) {
          only.push(...taken.map(({ place }) => place))
          await send({ taken, free: [] })
        }
        await send({ taken: [], free: [], only })
      },
      apply: async (changes) => {
        const ports = changedIds(changes, [PORT_CHANGED])
        if (ports.length === 0) return
        const taken = await this.#remoteAddresses(
          await this.#read((online) => online.holdersOfPorts(ports.map(Number))),
        )
        const there = new Set(taken.map(({ place }) => place))
        await send({ taken, free: ports.map((port) => `:${port}`).filter((place) => !there.has(place)) })
      },
    }
  }

  async *#allPorts(): AsyncGenerator<readonly RemoteAddress[]> {
    let after: { readonly port: number; readonly place: string } | undefined
    for (;;) {
      const page = { after, limit: PORTS_TOGETHER }
      const some = await this.#read((online) => online.ports(page))
      yield await this.#remoteAddresses(some)
      const last = some.at(-1)
      if (last?.port === undefined || last.port === null) return
      after = { port: last.port, place: last.place }
    }
  }

  async #addressesOf(asked: readonly (readonly string[])[]) {
    const wanted = [...new Set(asked.flat())]
    const found = await this.#remoteAddresses(await this.#read((online) => online.holders(wanted)))
    const byAddress = new Map(found.map((each) => [each.place, each]))
    return (addresses: readonly string[]): readonly RemoteAddress[] =>
      addresses.flatMap((place) => byAddress.get(place) ?? [])
  }

  async #remoteAddresses(rows: readonly StoredHeldAddress[]): Promise<RemoteAddress[]> {
    const others = rows.flatMap(({ place, config, holders }) => {
      const holder = holders.find(({ nodeId }) => nodeId !== this.#options.nodeId)
      if (!holder) return []
      const { tunnelId, sessionId, nodeId, planeId, version } = holder
      const served = this.#openConfig(place, config)
      if (!served) return []
      const tunnel = { tunnelId, sessionId, nodeId, planeId, httpVersion: httpVersionOf(served) }
      return [{ place, config: served, version, tunnel }]
    })
    await this.#options.introduce(new Set(others.map(({ tunnel }) => tunnel.nodeId)))
    return others
  }

  #openConfig(place: string, sealed: string): EdgeConfig | undefined {
    try {
      return JSON.parse(this.#options.sealer.open(sealed, addressContext(place))) as EdgeConfig // sealed by a node from one
    } catch (err) {
      // Serving nothing is better than serving without guards.
      this.#options.log.error(
        { err, place },
        'cannot unseal the configuration of a place at another node; it is not served here',
      )
      return undefined
    }
  }

  #read<T>(query: (online: OnlineReader) => Promise<T>): Promise<T> {
    return this.#options.store.read(({ online }) => query(online), { withinMs: LOOK_UP_MS })
  }
}

function remoteTunnel({ id: tunnelId, sessionId, nodeId, planeId, fields }: StoredOnlineTunnel): RemoteTunnel {
  const { tunnel, httpVersion, pool } = JSON.parse(fields) as KeptTunnel // written by a node from one
  const labels = pool?.labels ?? tunnel.labels
  return { tunnelId, sessionId, nodeId, planeId, httpVersion, labels, version: pool?.version }
}
