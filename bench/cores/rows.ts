/** The rows that are measured under load; the first lane of each is the baseline. */
import { fileURLToPath } from 'node:url'
import type { Bar, EdgeLane } from '../edge/compare.ts'
import { lead, leadToUpstream, type Scene, type Side, spread } from '../edge/scene.ts'
import { awaitAnswer } from '../entrance.ts'
import type { Load } from '../measure.ts'
import { paths, SMALL_BYTES } from '../nginx.ts'
import { startAgent } from '../postern.ts'
import { requests, type Unit } from '../result.ts'
import { LOOPBACK } from '../stage/ports.ts'
import { runWrk } from '../wrk.ts'
import { limitCpu } from './cpu-quota.ts'
import { acceptedBy } from './held-connections.ts'
import { processesOf, workersOf } from './processes.ts'

const KEPT_ALIVE = 64

/** Concurrent new connections: so many that no worker waits for the generator. */
const NEW_AT_A_TIME = 64
const NAMES = 10
const GRACE_MS = 20_000

/** How long a server runs for each worker before it is limited, in seconds. */
const UNLIMITED_S = 10

/** The share of a core for each worker, in percent: so little that generator and upstream can keep two of them busy. */
const CONNECTIONS_QUOTA = 20
const REQUESTS_QUOTA = 40

const TWICE_THE_CONNECTIONS: Bar = { speed: 1.6 }
const TWICE_THE_REQUESTS: Bar = { speed: 1.4 }
const SAME_WORKER: Bar = { cost: 1.1 }
const HOP: Bar = { cost: 1.5 }

const HTTPS = 'L7 HTTPS'

const ONE_PROCESS = 'one process'
const ONE_WORKER = 'one worker'
const TWO_WORKERS = 'two workers'

const connections: Unit = { speed: 'connections/s', speedPer: 1, cpu: 's/10k', cpuPer: 1e4 }

export interface Row {
  readonly name: string
  readonly title: string
  readonly unit: Unit
  readonly needs: readonly string[]
  /** Starts the lanes; the others are compared with the first. */
  readonly raise: (scene: Scene) => Promise<EdgeLane[]>
}

const dialAnew = fileURLToPath(new URL('../edge/dial-anew.ts', import.meta.url))
const visitWorker = fileURLToPath(new URL('./visit-worker.ts', import.meta.url))

export const rows: readonly Row[] = [
  {
    name: 'tls-connections',
    title: `new connections, each a TLS handshake and a request; each worker has ${CONNECTIONS_QUOTA} % of a core`,
    unit: connections,
    needs: ['nginx'],
    raise: (scene) =>
      oneAndTwo(scene, { quota: CONNECTIONS_QUOTA, bar: TWICE_THE_CONNECTIONS }, async (side, upstreamPort) => {
        const edges = spread(side.store, NAMES)
        // Visits each once, because the first visit makes the certificate.
        for (const edge of edges) await leadToUpstream(side, edge, upstreamPort)
        const names = edges.map(({ name }) => name)
        const to = [NEW_AT_A_TIME, side.httpsPort, paths.small, 'X25519', side.caFile, ...names]
        return (seconds) => runProgram(scene, dialAnew, seconds, to)
      }),
  },
  {
    name: 'requests',
    title: `requests on ${KEPT_ALIVE} kept-alive connections; each worker has ${REQUESTS_QUOTA} % of a core`,
    unit: requests,
    needs: ['wrk', 'nginx'],
    raise: (scene) =>
      oneAndTwo(scene, { quota: REQUESTS_QUOTA, bar: TWICE_THE_REQUESTS }, async (side, upstreamPort) => {
        const [edge] = side.store.edges
        if (!edge) throw new Error('an edge is needed')
        const entrance = await leadToUpstream(side, edge, upstreamPort)
        const wrk = scene.path('wrk')
        const load = { wrk, entrance, path: paths.small, connections: KEPT_ALIVE }
        return (seconds) => runWrk(scene.stage.programs, { ...load, seconds })
      }),
  },
  {
    name: 'same-worker',
    title: `requests on ${KEPT_ALIVE} kept-alive connections through a tunnel; the CPU is that of the server alone`,
    unit: requests,
    needs: ['nginx'],
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const alone = await tunnelled(scene, upstreamPort, 0)
      const one = await tunnelled(scene, upstreamPort, 1)
      return [
        lane(ONE_PROCESS, alone.side, null, alone.visits(alone.holder)),
        lane(ONE_WORKER, one.side, SAME_WORKER, one.visits(one.holder)),
      ]
    },
  },
  {
    name: 'hop',
    title: 'the same with two workers, with all visitors at one of them',
    unit: requests,
    needs: ['nginx'],
    async raise(scene) {
      const upstreamPort = await scene.upstream()
      const alone = await tunnelled(scene, upstreamPort, 0)
      const two = await tunnelled(scene, upstreamPort, 2)
      const other = workersOf(two.side.program).find((pid) => pid !== two.holder)
      if (other === undefined) throw new Error('there is only one worker')
      return [
        lane(ONE_PROCESS, alone.side, null, alone.visits(alone.holder)),
        lane(`${TWO_WORKERS}, at the one that has the session`, two.side, SAME_WORKER, two.visits(two.holder)),
        lane(`${TWO_WORKERS}, at the other`, two.side, HOP, two.visits(other)),
      ]
    },
  },
]

type Run = EdgeLane['run']

/** The same load on a server with one worker and on one with two, each of which may use only a part of a core. */
async function oneAndTwo(
  scene: Scene,
  { quota, bar }: { quota: number; bar: Bar },
  prepare: (side: Side, upstreamPort: number) => Promise<Run>,
): Promise<EdgeLane[]> {
  const upstreamPort = await scene.upstream()
  const raise = async (name: string, workers: number, bar: Bar | null): Promise<EdgeLane> => {
    const side = await scene.serve(await scene.withRoutes(`cores-${workers}`, []), { workers })
    const run = await prepare(side, upstreamPort)
    // First without a limit, since with one, Node would take long to compile what it has just loaded.
    await run(UNLIMITED_S * workers)
    for (const pid of workersOf(side.program)) limitCpu(side.place.stage, pid, quota)
    return lane(name, side, bar, run)
  }
  return [await raise(ONE_WORKER, 1, null), await raise(TWO_WORKERS, 2, bar)]
}

interface Tunnelled {
  readonly side: Side
  /** The process that has the agent's session. */
  readonly holder: number
  /** Requests on connections that this process has accepted. */
  readonly visits: (pid: number) => Run
}

/** An edge with a tunnel of our agent behind it. */
async function tunnelled(scene: Scene, upstreamPort: number, workers: number): Promise<Tunnelled> {
  const side = await scene.serve(await scene.withRoutes(`cores-${workers}`, []), { workers })
  const [edge] = side.store.edges
  if (!edge) throw new Error('an edge is needed')
  const labels = { bench: 'cores' }
  const entrance = await lead(side, edge, { kind: 'tunnel_group', body: { labels } })
  // JSON is valid YAML.
  const tunnels = { bench: { addr: `http://${LOOPBACK}:${upstreamPort}`, labels } }
  const config = await side.place.stage.write('agent.yml', JSON.stringify({ version: 1, tunnels }))
  await startAgent(side.place, side, ['start', '--config', config])
  await awaitAnswer(entrance, paths.small, SMALL_BYTES)
  const holders = processesOf(side.program).filter(({ pid }) => acceptedBy(pid, side.agentPort).size > 0)
  const [holder] = holders
  if (!holder || holders.length > 1) throw new Error(`${holders.length} processes have a session of the agent`)
  return {
    side,
    holder: holder.pid,
    visits: (pid) => (seconds) =>
      runProgram(scene, visitWorker, seconds, [
        ...[KEPT_ALIVE, side.httpsPort, paths.small, side.caFile, edge.name, pid],
      ]),
  }
}

function lane(name: string, { program }: Side, bar: Bar | null, run: Run): EdgeLane {
  return { name, link: HTTPS, isOurs: true, bar, pids: () => (program.hasEnded() ? [] : [program.pid]), run }
}

/** Runs one of our generators, which print their result as JSON. */
async function runProgram(
  { stage }: Scene,
  program: string,
  seconds: number,
  args: readonly (string | number)[],
): Promise<Load> {
  const timeoutMs = seconds * 1000 + GRACE_MS
  const all = [program, String(seconds), ...args.map(String)]
  return JSON.parse(await stage.programs.run(process.execPath, all, { timeoutMs })) as Load // they print it in this form
}
