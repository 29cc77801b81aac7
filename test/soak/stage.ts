/** The stage of the soak: services of every kind, edges in front of them, and an agent that stays. */
import { once } from 'node:events'
import { connect } from '../../src/agent/library.ts'
import { freeTcpPort } from '../support/free-port.ts'
import { http2Upstream, httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { echoMessages } from '../support/websocket.ts'
import type { WatchedServer } from './watched-server.ts'

export const WEBHOOK_SECRET = 'a secret of the soak'

/** Where the actors send their traffic. */
export interface Stage {
  readonly watched: WatchedServer
  readonly ca: string
  /** HTTPS edges: to a service that the server dials, to the same over HTTP/2, and through a tunnel. */
  readonly https: readonly string[]
  /** An HTTPS edge whose routes verify webhooks. */
  readonly webhooks: string
  /** A TLS edge, and a TCP edge; both echo. */
  readonly tls: string
  readonly tcp: string
  /** `host:port` of a service that echoes requests, and of one that neither reads nor answers. */
  readonly service: string
  readonly silent: string
  /** An HTTPS edge in front of the silent service. */
  readonly stalled: string
  /** The port of the TLS listener. */
  readonly port: number
}

/** The answer to `/large`. */
const large = Buffer.alloc(8 * 1024 * 1024)

export async function buildStage(owner: Owner, watched: WatchedServer): Promise<Stage> {
  const { api, server, ca } = watched
  const port = Number(server.https.split(':').at(-1))
  const service = await httpUpstream(
    owner,
    (request, response) => {
      request.resume()
      if (request.url === '/large') response.end(large)
      else request.once('end', () => response.end('hello'))
    },
    echoMessages,
  )
  const second = await http2Upstream(owner, (stream) => {
    stream.resume()
    stream.once('end', () => {
      if (stream.destroyed) return
      stream.respond({ ':status': 200 })
      stream.end('hello')
    })
  })
  const echo = await tcpUpstream(owner)
  const silent = await tcpUpstream(owner, (socket) => socket.pause())

  const toAddress = async (address: string): Promise<string> =>
    (await api.create('/backends/static', { address, tls: { enabled: false } })).id
  const httpsEdge = async (name: string, route: Record<string, unknown>): Promise<string> => {
    const edge = await api.create('/edges/https', { hostports: [`${name}:443`] })
    await api.create(`/edges/https/${edge.id}/routes`, { match_type: 'path_prefix', match: '/', ...route })
    return `https://${name}:${port}`
  }
  const dialled = { backend_id: await toAddress(service.address) }
  const echoed = { backend_id: await toAddress(echo.address) }
  const { id: overHttp2 } = await api.create('/backends/tunnel_group', { labels: { soak: 'http2' } })
  const { id: tunnelled } = await api.create('/backends/tunnel_group', { labels: { soak: 'http1' } })
  const tcpPort = await freeTcpPort()

  const agent = await connect({ server: server.agents, authtoken: watched.authtoken, ca })
  owner.after(() => agent.close())
  await agent.forward({ labels: { soak: 'http1' }, addr: service.address })
  await agent.forward({ labels: { soak: 'http2' }, addr: second.address, app_protocol: 'http2' })

  const stage: Stage = {
    watched,
    ca,
    port,
    service: service.address,
    silent: silent.address,
    https: [
      await httpsEdge('dialled.soak.test', { backend: dialled, compression: {} }),
      await httpsEdge('tunnelled.soak.test', { backend: { backend_id: tunnelled } }),
      await httpsEdge('http2.soak.test', { backend: { backend_id: overHttp2 } }),
    ],
    webhooks: await httpsEdge('hooks.soak.test', {
      backend: dialled,
      webhook_verification: { provider: 'github', secret: WEBHOOK_SECRET },
    }),
    stalled: await httpsEdge('stalled.soak.test', { backend: { backend_id: await toAddress(silent.address) } }),
    tls: `tls://tls.soak.test:${port}`,
    tcp: `tcp://127.0.0.1:${tcpPort}`,
  }
  await api.create('/edges/tls', {
    hostports: ['tls.soak.test:443'],
    backend: echoed,
    tls_termination: { terminate_at: 'edge' },
  })
  await api.create('/edges/tcp', { hostports: [`tcp.soak.test:${tcpPort}`], backend: echoed })
  return stage
}

/** A pause that ends early when `signal` is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const over = (): void => resolve()
  signal?.addEventListener('abort', over)
  await promise
  clearTimeout(timer)
  signal?.removeEventListener('abort', over)
}

/** Waits for an event of something that may close before. */
export async function onceOrClosed(
  emitter: NodeJS.EventEmitter & { readonly destroyed?: boolean },
  event: string,
): Promise<void> {
  if (emitter.destroyed) return
  const done = new AbortController()
  const { signal } = done
  await Promise.race([once(emitter, event, { signal }), once(emitter, 'close', { signal })]).catch(() => {})
  done.abort()
}
