/** Kills each process of a server in turn, under load: only what was in the killed process may fail. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Json } from '../support/api-client.ts'
import { isFree } from '../support/free-port.ts'
import { metric } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'
import { type Children, childrenOf, connectionsOf, type TcpConnection } from './children.ts'
import { type Footprint, footprint, leftovers } from './footprint.ts'
import { judgeKills, type Kill, type KillVerdict } from './kill-verdict.ts'
import { copyProgram } from './program.ts'
import { lostWrites } from './verdict.ts'
import type { VisitorsReport } from './visitors.ts'
import { startVisitors } from './visitors-process.ts'
import { portOf, startWorld, type World } from './world.ts'

export interface KillOptions {
  readonly rounds: number
  readonly workers: number
  /** SQLite if omitted. */
  readonly databaseUrl?: string
  readonly progress: (line: string) => void
}

export interface KillReport extends KillVerdict {
  readonly visitors: VisitorsReport
  readonly kills: readonly Kill[]
  readonly restarts: number
  readonly before: Footprint
  readonly after: Footprint
}

const DRAIN_MS = 1000

const REQUESTS_PER_SECOND = 300

/** The minimum time under load between two kills, in milliseconds. */
const CALM_MS = 500

/** An agent that loses a session younger than this rightly waits longer before it reconnects, in milliseconds. */
const STEADY_MS = 11_000

/** How long the machine rests before memory and descriptors are compared, in milliseconds. */
const REST_MS = 3000

/** The longest pause of the supervisor before it replaces a process, in milliseconds. */
const MAX_PAUSE_MS = 500

/** Every this many rounds, the next process is killed before the last one is replaced. */
const HASTE_EVERY = 5

/** How long a process may take to be replaced, in milliseconds. */
const REPLACED_MS = 60_000

/** Processes end here because they were killed, or because their control process was killed while they started. */
const expectedEnds = /"SIGKILL"|the control process ended meanwhile/

export async function kill(owner: Owner, options: KillOptions): Promise<KillReport> {
  const { rounds, workers, databaseUrl, progress } = options
  // A copy, so that edits to this clone during the run do not change what is started.
  const program = copyProgram(owner)
  // So many deaths look like a broken program to the supervisor, which would restart it more and more slowly.
  program.edit('src/server/supervisor/restart-pause.ts', 'MAX_PAUSE_MS = 30_000', `MAX_PAUSE_MS = ${MAX_PAUSE_MS}`)
  const world = await startWorld(owner, {
    ...{ workers, drainMs: DRAIN_MS, launcher: program.launcher },
    ...(databaseUrl !== undefined && { databaseUrl }),
  })
  const before = footprint(world, await world.children())
  const visitors = startVisitors(owner, { places: world.places, requestsPerSecond: REQUESTS_PER_SECOND })
  await pause(CALM_MS)
  const kills: Kill[] = []
  for (let round = 1; round <= rounds; round++) {
    const killed = await killOne(world, round, kills)
    kills.push(killed)
    const { what, hadAgents, backMs } = killed
    const agents = ['none', 'one agent', 'both agents'][Number(hadAgents.own) + Number(hadAgents.official)]
    progress(
      `round ${round} of ${rounds}: ${what} killed (${agents}); served again after ${backMs.own.toFixed(0)} ms, official agent ${backMs.official.toFixed(0)} ms; ${visitors.done} requests`,
    )
    await pause(CALM_MS)
  }
  const report = await visitors.stop()
  await pause(REST_MS)
  const after = footprint(world, await world.children())
  const restarts = await metric(world.server.metricsUrl, 'postern_process_restarts_total')
  const verdict = judgeKills(report, kills)
  const faults = [...verdict.faults, ...leftovers({ before, after }), ...(await lostWrites(world.api, report))]
  if (restarts < rounds) faults.push(`${rounds} processes were killed, and ${restarts} replaced`)
  for (const { msg, text } of world.log.lines) {
    if (msg.startsWith('process ended') && !expectedEnds.test(text)) faults.push(`the log says: ${text}`)
  }
  faults.push(...(await heldAddresses(world)))
  return { ...verdict, visitors: report, faults, kills, restarts, before, after }
}

/** Kills one process; resolves when all processes and agents are back. */
async function killOne(world: World, round: number, former: readonly Kill[]): Promise<Kill> {
  const { supervisor, workers, places, ca } = world
  const { what, pid } = victim(world, await world.children(), former)

  // Stopped first, so that nothing changes while its connections are counted.
  process.kill(pid, 'SIGSTOP')
  const hadAgents = agentsIn(world, pid)
  const ports = new Set(connectionsOf(pid).map(({ farPort }) => farPort))
  const at = Date.now()
  const from = world.log.lines.length
  process.kill(pid, 'SIGKILL')

  const back = async (url: string | undefined): Promise<number> => {
    if (url === undefined) return 0
    await until(`${url} is served`, async () => (await visit(url, { ca }).catch(() => undefined))?.status === 200)
    return Date.now() - at
  }
  const [own, official] = await Promise.all([back(places.agent), back(places.official)])
  await until('another process is there', () => {
    const now = childrenOf(supervisor, workers)
    return now !== undefined && ![now.control, ...now.workers].includes(pid)
  })
  if (round % HASTE_EVERY > 0) await world.log.says(/"process is ready"/, { from, limitMs: REPLACED_MS })
  const isDouble = round > 1 && (round - 1) % HASTE_EVERY === 0
  return { round, what, at, ports, hadAgents, isDouble, backMs: { own, official } }
}

/** Picks the workers and the control process in turn; skips a worker whose agents have just come back. */
function victim(world: World, { control, workers }: Children, former: readonly Kill[]) {
  const ofControl = { what: 'control' as const, pid: control }
  const turn = former.length % (workers.length + 1)
  if (turn === workers.length) return ofControl
  const isSteady = (kind: 'own' | 'official'): boolean =>
    Date.now() - (former.findLast(({ hadAgents }) => hadAgents[kind])?.at ?? 0) > STEADY_MS
  const isReady = (pid: number): boolean => {
    const { own, official } = agentsIn(world, pid)
    return (!own || isSteady('own')) && (!official || isSteady('official'))
  }
  // Workers that have agents go first.
  const ready = workers.filter(isReady)
  const pid = ready.find((each) => agentsIn(world, each).own) ?? ready[0]
  return pid === undefined ? ofControl : { what: 'worker' as const, pid }
}

/** Which agents have their session in a process. */
function agentsIn({ server, official }: World, pid: number): Kill['hadAgents'] {
  const agentsPort = portOf(server.agents)
  const ofOfficial = new Set(connectionsOf(official?.pid ?? 0).map(({ nearPort }) => nearPort))
  const there = connectionsOf(pid).filter(({ nearPort }) => nearPort === agentsPort)
  const isOfficial = ({ farPort }: TcpConnection): boolean => ofOfficial.has(farPort)
  return { own: there.some((each) => !isOfficial(each)), official: there.some(isOfficial) }
}

/** Checks that the API lists online agents, and that nothing is held by those that left; ends the server. */
async function heldAddresses(world: World): Promise<string[]> {
  const faults: string[] = []
  const { api, server, places } = world
  const list = async (path: string, key: string): Promise<Json[]> => (await api.get(path))[key]
  const counted = async (wanted: { tunnels: number; sessions: number }): Promise<void> => {
    const look = async () => ({
      tunnels: (await list('/tunnels', 'tunnels')).length,
      sessions: (await list('/tunnel_sessions', 'tunnel_sessions')).length,
    })
    let last = await look()
    const isSo = () => last.tunnels === wanted.tunnels && last.sessions === wanted.sessions
    const seen = async () => {
      if (!isSo()) last = await look()
      return isSo()
    }
    await until('the lists are right', seen, { limitMs: 20_000 }).catch(() => {
      faults.push(`the API lists ${JSON.stringify(last)}, where ${JSON.stringify(wanted)} are there`)
    })
  }
  await counted({ tunnels: 3, sessions: 2 })
  await world.leave()
  await counted({ tunnels: 0, sessions: 0 })
  await world.bindAgain().catch((error: unknown) => {
    faults.push(`names and ports cannot be bound again: ${error instanceof Error ? error.message : String(error)}`)
  })
  const ports = [server.agents, server.https, server.http, server.ssh].map(portOf)
  ports.push(...[places.agentTcp, places.tcpEdge, server.url].map((url) => Number(new URL(url ?? '').port)))
  const { code } = await server.stop()
  if (code !== 0) faults.push(`the server ended with ${code}`)
  for (const port of ports) if (!(await isFree(port))) faults.push(`port ${port} is not free after the end`)
  const left = world.unixSockets()
  if (left.length > 0) faults.push(`left in the folder for Unix sockets: ${left.join(', ')}`)
  return faults
}
