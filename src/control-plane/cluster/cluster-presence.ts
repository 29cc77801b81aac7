/** What is online at all nodes, as the API reads it: the rows of every node whose lease runs. */
import { labelTexts } from '../../model/label-groups.ts'
import type { Presence, PresentEndpoint, PresentNode, PresentSession, PresentTunnel } from '../../model/presence.ts'
import type { LiveNode, StoredOnlineTunnel } from '../store/online-rows.ts'
import type { Reader } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import type { KeptTunnel } from './write-online-rows.ts'

interface ClusterPresenceOptions {
  readonly store: Store
  /** Resolves when all changes here so far are written. */
  readonly written: () => Promise<void>
  readonly command: Presence['command']
  /** This node's own count of the moment; other nodes report theirs whenever they renew their lease. */
  readonly own: { readonly id: string; sessions(): number }
}

/** How many tunnels of one group are listed. */
const MAX_LISTED = 10_000

export function clusterPresence({ store, written, command, own }: ClusterPresenceOptions): Presence {
  const read: Store['read'] = async (query) => {
    await written()
    return store.read(query)
  }
  const one = async <Row, Item>(query: (reader: Reader) => Promise<Row | undefined>, itemOf: (row: Row) => Item) => {
    const row = await read(query)
    return row && itemOf(row)
  }
  const nodeOf = ({ leaseMs, sessions, id, name, address, region, version, since }: LiveNode): PresentNode => ({
    ...{ id, name, address, region, version, since },
    sessions: id === own.id ? own.sessions() : sessions,
    lease: Math.floor(leaseMs / 1000),
  })
  return {
    nodes: async ({ beforeId, limit }) => {
      const all = (await read(({ online }) => online.nodes())).map(nodeOf).sort((a, b) => (a.id < b.id ? 1 : -1))
      return all.filter(({ id }) => beforeId === undefined || id < beforeId).slice(0, limit)
    },
    node: async (id) => {
      const found = (await read(({ online }) => online.nodes())).find((each) => each.id === id)
      return found && nodeOf(found)
    },
    sessions: async (page) => (await read(({ online }) => online.sessions(page))).map(sessionOf),
    session: (id) => one(({ online }) => online.session(id), sessionOf),
    tunnels: async (page) => (await read(({ online }) => online.tunnels(page))).map(tunnelOf),
    tunnel: (id) => one(({ online }) => online.tunnel(id), tunnelOf),
    endpoints: async (page) => (await read(({ online }) => online.endpoints(page))).flatMap(endpointsOf),
    endpoint: (id) =>
      one(
        ({ online }) => online.endpoint(id),
        (row) => endpointsOf(row)[0],
      ),
    tunnelsWith: async (labels) => {
      const pairs = labelTexts(labels)
      return (await read(({ online }) => online.tunnelsWith(pairs, MAX_LISTED))).map(({ id }) => id)
    },
    command,
  }
}

// Rows were written from values of these types.

function sessionOf({ fields }: { readonly fields: string }): PresentSession {
  return JSON.parse(fields) as PresentSession
}

function tunnelOf({ fields }: StoredOnlineTunnel): PresentTunnel {
  return (JSON.parse(fields) as KeptTunnel).tunnel
}

function endpointsOf({ fields }: StoredOnlineTunnel): PresentEndpoint[] {
  const { endpoint } = JSON.parse(fields) as KeptTunnel
  return endpoint ? [endpoint] : []
}
