/** How many agents one PostgreSQL can take that connect to several nodes, each with a session, a tunnel and a name. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Load } from '../measure.ts'
import { cpuSeconds } from '../stage/proc.ts'
import { grouped, table } from '../table.ts'
import type { Database } from './database.ts'

/** Agents of one node that wait for their names at the same time: as many as come back when another node is gone. */
const AT_ONCE = 500

const MILLION = 1e6

const program = fileURLToPath(new URL('./connecting-node.ts', import.meta.url))

export interface ConnectsOptions {
  readonly database: Database
  readonly writers: number
  readonly seconds: number
}

export interface ConnectsResult {
  readonly writers: number
  readonly perSecond: number
  /** CPU seconds for one connect: of the database, and of the nodes. */
  readonly databaseCpu: number
  readonly nodeCpu: number
}

export async function measureConnects({ database, writers, seconds }: ConnectsOptions): Promise<ConnectsResult> {
  const url = await database.create()
  const nodes: WritingNode[] = []
  try {
    for (let i = 0; i < writers; i++) nodes.push(await startNode(i, { url, seconds }))
    const pids = nodes.map(({ pid }) => pid)
    const before = { database: database.cpu(), nodes: cpuSeconds(pids) }
    for (const { begin } of nodes) begin()
    // Measured while they run, since the CPU time of an ended process is lost.
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    const used = { database: database.cpu() - before.database, nodes: cpuSeconds(pids) - before.nodes }
    const loads = await Promise.all(nodes.map(({ load }) => load))
    const amount = loads.reduce((sum, load) => sum + load.amount, 0)
    const perSecond = loads.reduce((sum, load) => sum + load.amount / load.seconds, 0)
    return { writers, perSecond, databaseCpu: used.database / amount, nodeCpu: used.nodes / amount }
  } finally {
    for (const { end } of nodes) end()
  }
}

export function connectsTable(results: readonly ConnectsResult[]): string {
  const head = ['nodes that write', 'connects/s', 'CPU of PostgreSQL', 'CPU of a node', 'a million agents connect in']
  const lines = results.map(({ writers, perSecond, databaseCpu, nodeCpu }) => [
    String(writers),
    grouped(perSecond),
    `${(databaseCpu * 1000).toFixed(2)} ms each`,
    `${(nodeCpu * 1000).toFixed(2)} ms each`,
    `${(MILLION / perSecond / 60).toFixed(1)} min`,
  ])
  return `${table([head, ...lines])}\n`
}

interface WritingNode {
  readonly pid: number
  readonly load: Promise<Load>
  readonly begin: () => void
  readonly end: () => void
}

/** Resolves once the node has its lease; it starts writing at `begin()`, so that all begin together. */
async function startNode(number: number, { url, seconds }: { url: string; seconds: number }): Promise<WritingNode> {
  const args = [program, String(number), String(seconds), String(AT_ONCE)]
  const env = { ...process.env, BENCH_DATABASE_URL: url }
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
  const ended = once(child, 'exit').then(() => undefined)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => {
    const line = await Promise.race([lines.next(), ended])
    if (line === undefined || line.done) throw new Error('a simulated node has ended')
    return line.value
  }
  await next()
  const load = next().then((line) => JSON.parse(line) as Load) // it prints it in this form
  // Awaited later; until then a failure must not end the process.
  load.catch(() => {})
  return {
    ...{ pid: child.pid ?? 0, load },
    begin: () => void child.stdin.write('begin\n'),
    end: () => void child.kill('SIGKILL'),
  }
}
