/** The rows that are measured under load: each is a kind of load and the lanes that get it; the first is the baseline. */
import { fileURLToPath } from 'node:url'
import { awaitAnswer, type Entrance } from '../entrance.ts'
import type { Load } from '../measure.ts'
import { paths, SMALL_BYTES } from '../nginx.ts'
import { startAgent } from '../postern.ts'
import { requests, type Unit } from '../result.ts'
import { LOOPBACK } from '../stage/ports.ts'
import type { Stage } from '../stage/stage.ts'
import { grouped } from '../table.ts'
import { runWrk } from '../wrk.ts'
import type { Bar, EdgeLane } from './compare.ts'
import { startTlsProxy, type TlsProxy } from './nginx-proxy.ts'
import { lead, leadToUpstream, type Scene, type Side, spread } from './scene.ts'
import type { SeededStore } from './seed.ts'

const KEPT_ALIVE = 64

/** New connections at a time: enough to keep the server busy. */
const NEW_AT_A_TIME = 8
const NAMES = 10

/** V8 compiles a function after some thousand calls, which take long at a few hundred connections a second. */
const CONNECTIONS_WARM_UP_S = 20
const GRACE_MS = 20_000

/** For a cost that should not grow; the rest is room for chance. */
const SAME_COST: Bar = { cost: 1.1 }

/** For an edge with a tunnel, compared with nginx without one. */
const HALF: Bar = { speed: 0.5 }

/** For a whole handshake with one request, compared with nginx. */
const HANDSHAKE: Bar = { cost: 1.6 }

/** Longer than any run, in seconds. */
const CAPTURE_S = 24 * 3600

const HTTPS = 'L7 HTTPS'
const NGINX = 'nginx'

/** A key exchange that both sides of a comparison support: nginx may use an OpenSSL that lacks the next one. */
const COMMON_GROUP = 'X25519'

/** The key exchange that browsers prefer. */
const HYBRID_GROUP = 'X25519MLKEM768'

const connections: Unit = { speed: 'connections/s', speedPer: 1, cpu: 's/10k', cpuPer: 1e4 }

export interface Row {
  readonly name: string
  readonly title: (options: Scene['options']) => string
  readonly unit: Unit
  readonly needs: readonly string[]
  readonly warmUpSeconds?: number
  /** Starts the lanes; the others are compared with the first. */
  readonly raise: (scene: Scene) => Promise<EdgeLane[]>
}

const dialAnew = fileURLToPath(new URL('./dial-anew.ts', import.meta.url))

export const rows: readonly Row[] = [
  {
    name: 'edges',
    title: ({ few, many }) => `requests on ${KEPT_ALIVE} kept-alive connections; ${between(few, many, 'edges')} stored`,
    unit: requests,
    needs: ['wrk', 'nginx'],
    raise: (scene) => fewAndMany(scene, async (side, port) => smallRequests(scene, await enter(side, port))),
  },
  {
    name: 'connections',
    title: ({ few, many }) =>
      `new connections, each a TLS handshake and a request, beside nginx; ${between(few, many, 'edges')} stored`,
    unit: connections,
    needs: ['nginx'],
    warmUpSeconds: CONNECTIONS_WARM_UP_S,
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const { nginx, entrance, caFile } = await nginxBeside(scene, upstreamPort)
      const { few, many } = scene.options
      const [fewSide, manySide] = [
        await scene.serve(await scene.fewEdges()),
        await scene.serve(await scene.manyEdges()),
      ]
      const visit = async (side: Side, groups: string): Promise<Run> => {
        const edges = spread(side.store, NAMES)
        // Visits each once, because the first visit makes the certificate.
        for (const edge of edges) await leadToUpstream(side, edge, upstreamPort)
        const names = edges.map(({ name }) => name)
        return newConnections(scene, { port: side.httpsPort, caFile: side.caFile, names, groups })
      }
      const [fewName, manyName] = [`${grouped(few)} edges`, `${grouped(many)} edges`]
      const toNginx = { port: entrance.port, caFile, names: [entrance.tls?.name ?? ''], groups: COMMON_GROUP }
      return [
        others(NGINX, nginx, newConnections(scene, toNginx)),
        ours(fewName, [fewSide], HANDSHAKE, await visit(fewSide, COMMON_GROUP)),
        { ...ours(manyName, [manySide], SAME_COST, await visit(manySide, COMMON_GROUP)), against: fewName },
        {
          ...ours(`${fewName}, ${HYBRID_GROUP}`, [fewSide], null, await visit(fewSide, HYBRID_GROUP)),
          against: fewName,
        },
      ]
    },
  },
  {
    name: 'routes',
    title: ({ fewRoutes, manyRoutes }) =>
      `requests on ${KEPT_ALIVE} kept-alive connections; ${between(fewRoutes, manyRoutes, 'routes')} on the edge`,
    unit: requests,
    needs: ['wrk', 'nginx'],
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const { fewRoutes, manyRoutes } = scene.options
      const sides: [string, SeededStore][] = [
        [`${grouped(fewRoutes)} routes`, await scene.withRoutes('few-routes', alike(fewRoutes))],
        [`${grouped(manyRoutes)} routes`, await scene.withRoutes('many-routes', alike(manyRoutes))],
        [`${grouped(manyRoutes)} of many lengths`, await scene.withRoutes('long-routes', ofManyLengths(manyRoutes))],
      ]
      return Promise.all(
        sides.map(async ([name, store], i) => {
          const side = await scene.serve(store)
          const entrance = await enter(side, upstreamPort)
          return ours(name, [side], i > 0 ? SAME_COST : null, smallRequests(scene, entrance, LONG_PATH))
        }),
      )
    },
  },
  {
    name: 'tunnel',
    title: () =>
      `requests on ${KEPT_ALIVE} kept-alive connections, beside nginx with TLS in front of the same upstream`,
    unit: requests,
    needs: ['wrk', 'nginx'],
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const { nginx, entrance: proxy } = await nginxBeside(scene, upstreamPort)
      const side = await scene.serve(await scene.fewEdges())
      const [bare, tunnelled] = spread(side.store, 2)
      if (!bare || !tunnelled) throw new Error('two edges are needed')
      const direct = await leadToUpstream(side, bare, upstreamPort)
      const labels = { bench: 'edge' }
      const through = await lead(side, tunnelled, { kind: 'tunnel_group', body: { labels } })
      // JSON is valid YAML.
      const tunnels = { bench: { addr: `http://${LOOPBACK}:${upstreamPort}`, labels } }
      const config = await side.place.stage.write('agent.yml', JSON.stringify({ version: 1, tunnels }))
      const { agent } = await startAgent(side.place, side, ['start', '--config', config])
      await awaitAnswer(through, paths.small, SMALL_BYTES)
      return [
        others('nginx, no tunnel', nginx, smallRequests(scene, proxy)),
        ours('edge, through a tunnel', [side, { program: agent }], HALF, smallRequests(scene, through)),
        ours('edge, no tunnel', [side], null, smallRequests(scene, direct)),
      ]
    },
  },
  {
    name: 'capture',
    title: () => `requests on ${KEPT_ALIVE} kept-alive connections; without a capture, beside one, and while one runs`,
    unit: requests,
    needs: ['wrk', 'nginx'],
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const quiet = await scene.serve(await scene.withRoutes('no-capture', []))
      const busy = await scene.serve(await scene.withRoutes('capture', []))
      const [captured, beside] = spread(busy.store, 2)
      if (!captured || !beside) throw new Error('two edges are needed')
      await busy.api.create('/captures', { edge_id: captured.id, bodies: true, duration: CAPTURE_S })
      return [
        ours('no capture', [quiet], null, smallRequests(scene, await enter(quiet, upstreamPort))),
        ours(
          'another edge is captured',
          [busy],
          SAME_COST,
          smallRequests(scene, await leadToUpstream(busy, beside, upstreamPort)),
        ),
        ours('captured', [busy], null, smallRequests(scene, await leadToUpstream(busy, captured, upstreamPort))),
      ]
    },
  },
]

type Run = EdgeLane['run']

/** The same load on a server with few edges and on one with many. */
async function fewAndMany(
  scene: Scene,
  prepare: (side: Side, upstreamPort: number) => Promise<Run>,
): Promise<EdgeLane[]> {
  const upstreamPort = await scene.upstream()
  const { few, many } = scene.options
  const sides = [await scene.serve(await scene.fewEdges()), await scene.serve(await scene.manyEdges())] as const
  return [
    ours(`${grouped(few)} edges`, [sides[0]], null, await prepare(sides[0], upstreamPort)),
    ours(`${grouped(many)} edges`, [sides[1]], SAME_COST, await prepare(sides[1], upstreamPort)),
  ]
}

/** Sends the first edge of a store to the upstream; resolves with its entrance. */
async function enter(side: Side, upstreamPort: number): Promise<Entrance> {
  const [edge] = side.store.edges
  if (!edge) throw new Error('an edge is needed')
  return leadToUpstream(side, edge, upstreamPort)
}

function ours(name: string, of: readonly Pick<Side, 'program'>[], bar: Bar | null, run: Run): EdgeLane {
  const pids = (): number[] => of.filter(({ program }) => !program.hasEnded()).map(({ program }) => program.pid)
  return { name, link: HTTPS, isOurs: true, bar, pids, run }
}

function others(name: string, { programs }: Stage, run: Run): EdgeLane {
  return { name, link: HTTPS, isOurs: false, bar: null, pids: () => programs.pids, run }
}

/** nginx in front of the upstream, on its own stage. */
async function nginxBeside(scene: Scene, upstreamPort: number): Promise<TlsProxy & { nginx: Stage }> {
  const nginx = scene.open('nginx')
  const proxy = await startTlsProxy(nginx, { nginx: scene.path('nginx'), upstreamPort })
  await awaitAnswer(proxy.entrance, paths.small, SMALL_BYTES)
  return { ...proxy, nginx }
}

interface Visited {
  readonly port: number
  readonly caFile: string
  readonly names: readonly string[]
  /** Key exchange groups that visitors offer, separated by colons. */
  readonly groups: string
}

/** Visits each name in turn, on a new connection each time. */
function newConnections({ stage }: Scene, { port, caFile, names, groups }: Visited): Run {
  return async (seconds) => {
    const args = [dialAnew, seconds, NEW_AT_A_TIME, port, paths.small, groups, caFile, ...names].map(String)
    const timeoutMs = seconds * 1000 + GRACE_MS
    // The program prints it in this form.
    return JSON.parse(await stage.programs.run(process.execPath, args, { timeoutMs })) as Load
  }
}

function smallRequests({ stage, path }: Scene, entrance: Entrance, at: string = paths.small): Run {
  return (seconds) => runWrk(stage.programs, { wrk: path('wrk'), entrance, path: at, connections: KEPT_ALIVE, seconds })
}

/** Prefixes such as an edge with many services may have. */
function alike(count: number): string[] {
  return Array.from({ length: count - 1 }, (_, i) => `/service-${i + 1}`)
}

/** Prefixes of all different lengths, none of which matches: the worst case for finding the longest prefix. */
function ofManyLengths(count: number): string[] {
  return Array.from({ length: count - 1 }, (_, i) => `/${'x'.repeat(i + 1)}`)
}

/** A path as long as the longest prefix. */
const LONG_PATH = `${paths.small}/`.padEnd(1000, 'y')

function between(few: number, many: number, what: string): string {
  return `${grouped(few)} and ${grouped(many)} ${what}`
}
