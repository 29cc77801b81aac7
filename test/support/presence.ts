/** Reads who is online, from the lists of the API and from the metrics. */
import assert from 'node:assert/strict'
import type { ApiClient, Json } from './api-client.ts'
import { until } from './until.ts'

export interface Watched {
  readonly admin: ApiClient
  readonly metricsUrl: string
}

export interface Online {
  readonly sessions: Json[]
  readonly tunnels: Json[]
  readonly endpoints: Json[]
}

export async function online({ admin }: Pick<Watched, 'admin'>): Promise<Online> {
  // In the reverse order of creation: when a session is just starting and we see its tunnel, we then also see the session.
  const { endpoints } = await admin.get('/endpoints?limit=100')
  const { tunnels } = await admin.get('/tunnels?limit=100')
  const { tunnel_sessions: sessions } = await admin.get('/tunnel_sessions?limit=100')
  return { sessions, tunnels, endpoints }
}

/** The gauges of the data plane; those with one value per edge are summed up. */
export async function gauges({ metricsUrl }: Pick<Watched, 'metricsUrl'>) {
  const text = await (await fetch(metricsUrl)).text()
  const sum = (name: string): number => {
    let total = 0
    for (const [, value] of text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))) total += Number(value)
    return total
  }
  return {
    sessions: sum('postern_sessions'),
    tunnels: sum('postern_tunnels'),
    streams: sum('postern_streams'),
    edges: sum('postern_edges'),
    open: sum('postern_edge_connections_open'),
  }
}

/** Resolves when `count` sessions are online. */
export function sessionsOnline(watched: Watched, count: number, limitMs?: number): Promise<Online> {
  return until(
    `${count} sessions online`,
    async () => {
      const now = await online(watched)
      return now.sessions.length === count && now
    },
    limitMs === undefined ? {} : { limitMs },
  )
}

/** Asserts that no agent is online, nothing is served, and no visitor is connected. */
export async function assertNobodyOnline(watched: Watched): Promise<void> {
  assert.deepEqual(await online(watched), { sessions: [], tunnels: [], endpoints: [] })
  const nothing = { sessions: 0, tunnels: 0, streams: 0, edges: 0, open: 0 }
  // Connections of visitors close a moment after the sessions that carried them.
  await until('no stream or connection is left', async () => {
    const now = await gauges(watched)
    return now.streams === 0 && now.open === 0
  })
  assert.deepEqual(await gauges(watched), nothing)
}
