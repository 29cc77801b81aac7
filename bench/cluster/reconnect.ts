/** How long addresses are away when a node dies: their agents come back at the other node, and visitors ask there. */
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AUTHTOKEN } from '../postern.ts'
import { LOOPBACK } from '../stage/ports.ts'
import { cpuSeconds, treeOf } from '../stage/proc.ts'
import type { Stages } from '../stage/stage.ts'
import { grouped, table } from '../table.ts'
import type { Database } from './database.ts'
import { startTwoNodes } from './two-nodes.ts'

/** All must be reachable again after this many seconds. */
const BAR_S = 10

/** How long agents may take to come online, in milliseconds: the first longer. */
const FIRST_MS = 30_000
const CONNECT_MS = 40

/**
 * Visitors who ask at the same time, and how long each waits before it asks again, in milliseconds. With a shorter wait most
 * of what they ask is for names that are not back, and answering them is most of what the node does.
 */
const VISITORS = 16
const AGAIN_MS = 200
const ANSWER_MS = 10_000

/** How an answer of an agent begins. */
const OK = 'HTTP/1.1 200 '

/** A name that does not answer after this long never will, in milliseconds. */
const TOO_LONG_MS = 120_000

const program = fileURLToPath(new URL('./returning-agents.ts', import.meta.url))

export interface ReconnectOptions {
  readonly stages: Stages
  readonly database: Database
  readonly nodeOptions: string
  readonly agents: number
  readonly progress: (text: string) => void
}

export interface ReconnectResult {
  readonly agents: number
  /** Seconds from the node's death until all agents are online again, and until all their names answer. */
  readonly back: number
  readonly reachable: number
  /** CPU seconds until then: of the node that is left, of the database, and of the agents and visitors. */
  readonly nodeCpu: number
  readonly databaseCpu: number
  readonly crowdCpu: number
}

export async function measureReconnect(options: ReconnectOptions): Promise<ReconnectResult> {
  const { stages, database, agents, progress } = options
  const { own, other, close } = await startTwoNodes(options)
  const crowd = stages.open('returning-agents')
  try {
    const urlFile = join(crowd.folder, 'urls.json')
    const args = [program, String(agents), urlFile, String(own.agentPort), String(other.agentPort)]
    const started = crowd.programs.start(process.execPath, args, { env: { BENCH_AUTHTOKEN: AUTHTOKEN } })
    await started.says(/^ready$/m, { timeoutMs: FIRST_MS + agents * CONNECT_MS })
    const names = (JSON.parse(await readFile(urlFile, 'utf8')) as string[]).map((url) => new URL(url).host)
    progress(`reconnect: ${agents} agents are online`)
    // Visited at the other node beforehand, so that it believes them to be where they soon are not.
    await untilAllAnswer(names, other.httpPort)
    progress('reconnect: all answer at the other node')

    const cpu = () => ({
      nodeCpu: cpuSeconds([other.program.pid]),
      databaseCpu: database.cpu(),
      crowdCpu: cpuSeconds([started.pid]) + ownCpu(),
    })
    const before = cpu()
    const begun = performance.now()
    const since = (): number => (performance.now() - begun) / 1000
    for (const { pid } of treeOf([own.program.pid])) process.kill(pid, 'SIGKILL')
    const [back, reachable] = await Promise.all([
      started.says(/^back$/m, { timeoutMs: TOO_LONG_MS }).then(since),
      untilAllAnswer(names, other.httpPort).then(since),
    ])
    const after = cpu()
    return {
      ...{ agents, back, reachable },
      nodeCpu: after.nodeCpu - before.nodeCpu,
      databaseCpu: after.databaseCpu - before.databaseCpu,
      crowdCpu: after.crowdCpu - before.crowdCpu,
    }
  } finally {
    await crowd.close()
    await close()
  }
}

export function reconnectTable(result: ReconnectResult): string {
  const { agents, back, reachable, nodeCpu, databaseCpu, crowdCpu } = result
  const head = [
    'agents',
    'all online again',
    'all reachable again',
    'CPU of the node that is left',
    'of PostgreSQL',
    'of agents and visitors',
    'bar',
  ]
  const isMet = reachable <= BAR_S
  const seconds = [back, reachable, nodeCpu, databaseCpu, crowdCpu].map((value) => `${value.toFixed(1)} s`)
  return `${table([head, [grouped(agents), ...seconds, `reachable within ${BAR_S} s: ${isMet ? 'met' : 'MISSED'}`]])}\n`
}

/** CPU seconds of this process, which the visitors are in. */
function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000_000
}

/** Asks for every name until each has answered once. */
async function untilAllAnswer(names: readonly string[], port: number): Promise<void> {
  const waiting = [...names]
  const deadline = performance.now() + TOO_LONG_MS
  const visit = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      if (await answers(name, port)) continue
      if (performance.now() > deadline) throw new Error(`${name} does not answer`)
      // Another one first: this one may take a while.
      waiting.push(name)
      await pause(AGAIN_MS)
    }
  }
  await Promise.all(Array.from({ length: VISITORS }, visit))
}

/** A bare socket, so that visitors take little of the cores that they share with the node. */
function answers(name: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK)
    socket.setTimeout(ANSWER_MS, () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => resolve(false))
    socket.on('data', (chunk) => {
      resolve(chunk.toString('latin1', 0, OK.length) === OK)
      socket.destroy()
    })
    socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
  })
}
