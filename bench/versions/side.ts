/** A server of one version with its agent and entrances: edges with and without a tunnel, and endpoints. */
import { readFile } from 'node:fs/promises'
import { awaitAnswer, type Entrance } from '../entrance.ts'
import { paths, SMALL_BYTES } from '../nginx.ts'
import { type Place, type PosternServer, startAgent, startPosternServer } from '../postern.ts'
import { LOOPBACK, retry } from '../stage/ports.ts'

const TUNNELS_MS = 15_000

/** The entrances that are measured, one after the other. */
export const ways = ['edge', 'edge-tunnel', 'http', 'tcp'] as const
export type Way = (typeof ways)[number]

export interface Side {
  readonly version: string
  readonly server: PosternServer
  readonly pids: Readonly<Record<'server' | 'agent', number>>
  readonly entrances: Readonly<Record<Way, Entrance>>
}

export async function raiseSide(version: string, place: Place, upstreamPort: number): Promise<Side> {
  const server = await startPosternServer(place)
  const { api, httpsPort, httpPort, caFile } = server
  const ca = await readFile(caFile, 'utf8')
  const upstream = `${LOOPBACK}:${upstreamPort}`
  const edge = async (name: string, kind: string, body: unknown): Promise<Entrance> => {
    const { id } = await api.create('/edges/https', { hostports: [`${name}:443`] })
    const route = await api.create(`/edges/https/${id}/routes`, { match_type: 'path_prefix', match: '/' })
    const backend = await api.create(`/backends/${kind}`, body)
    await api.put(`/edges/https/${id}/routes/${route.id}/backend`, { backend_id: backend.id })
    return { host: LOOPBACK, port: httpsPort, tls: { name, ca } }
  }
  const labels = { bench: 'versions' }
  const tunnels = {
    edge: { addr: `http://${upstream}`, labels },
    http: { proto: 'http', addr: upstream, schemes: ['http'] },
    tcp: { proto: 'tcp', addr: upstream },
  }
  // JSON is valid YAML.
  const config = await place.stage.write('agent.yml', JSON.stringify({ version: 1, tunnels }))
  const { agent } = await startAgent(place, server, ['start', '--all', '--config', config])
  const url = async (scheme: string): Promise<URL> => {
    // The form of the contract; tunnels behind edges have no URL.
    const { tunnels: online } = (await api.get('/tunnels')) as { tunnels: { public_url?: string | null }[] }
    const found = online.find(({ public_url }) => public_url?.startsWith(`${scheme}:`))
    if (!found?.public_url) throw new Error(`there is no ${scheme} tunnel: ${agent.output().trim()}`)
    return new URL(found.public_url)
  }
  const patience = { timeoutMs: TUNNELS_MS, isLost: () => agent.hasEnded() }
  const [http, tcp] = await Promise.all([retry(() => url('http'), patience), retry(() => url('tcp'), patience)])
  const entrances = {
    edge: await edge('bare.bench.test', 'static', { address: upstream }),
    'edge-tunnel': await edge('tunnelled.bench.test', 'tunnel_group', { labels }),
    http: { host: LOOPBACK, port: httpPort, hostHeader: http.host },
    tcp: { host: LOOPBACK, port: Number(tcp.port) },
  }
  for (const entrance of Object.values(entrances)) await awaitAnswer(entrance, paths.small, SMALL_BYTES)
  return { version, server, pids: { server: server.program.pid, agent: agent.pid }, entrances }
}
