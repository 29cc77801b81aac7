/** How long addresses are down when a node dies, until agents are back and visitors reach them at the other node. */
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
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

/** How long the first agent and each further one may take to come online, in milliseconds. */
const FIRST_MS = 30_000
const CONNECT_MS = 40

/**
 * The number of concurrent visitors, and how long each waits between tries, in milliseconds. With a shorter wait, most
 * requests are for names that are not back yet, and refusing them is most of the node's work.
 */
const VISITORS = 16
const AGAIN_MS = 200
const ANSWER_MS = 10_000

/** The beginning and the end of an agent's answer. */
const OK = 'HTTP/1.1 200 '
const BODY = '\r\n\r\nok'

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
  /** CPU seconds until then: of the remaining node, of the database, and of the agents and visitors. */
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
    // Visited at the other node first, so that it believes them to be at the node that dies.
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

/** CPU seconds of this process, which runs the visitors. */
function ownCpu(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000_000
}

/** Requests every name until each has answered once. */
async function untilAllAnswer(names: readonly string[], port: number): Promise<void> {
  const waiting = [...names]
  const deadline = performance.now() + TOO_LONG_MS
  const visit = async (): Promise<void> => {
    const visitor = new Visitor(port)
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      if (await visitor.isAnsweredAt(name)) continue
      if (performance.now() > deadline) throw new Error(`${name} does not answer`)
      // Others come first, since this one may take a while.
      waiting.push(name)
      await pause(AGAIN_MS)
    }
    visitor.leave()
  }
  await Promise.all(Array.from({ length: VISITORS }, visit))
}

/**
 * A bare socket that requests one name after the other, and is kept as long as it gets answers, like that of a proxy in
 * front of the node: so visitors use little of the cores that they share with the node.
 */
class Visitor {
  readonly #port: number
  #socket: Socket | undefined
  #got = ''
  #settle: ((isAnswered: boolean) => void) | undefined

  constructor(port: number) {
    this.#port = port
  }

  isAnsweredAt(name: string): Promise<boolean> {
    this.#socket ??= this.#connect()
    this.#got = ''
    this.#socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
    return new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  leave(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #connect(): Socket {
    const socket = connect(this.#port, LOOPBACK)
    socket.setTimeout(ANSWER_MS, () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => {
      // No request waits on a socket that was left.
      if (this.#socket === socket) this.#settled(false)
    })
    socket.on('data', (chunk) => {
      this.#got += chunk.toString('latin1')
      // After any other answer, the visitor retries on another connection.
      if (!this.#got.startsWith(OK.slice(0, this.#got.length))) this.#settled(false)
      else if (this.#got.endsWith(BODY)) this.#settled(true)
    })
    return socket
  }

  #settled(isAnswered: boolean): void {
    if (!isAnswered) this.leave()
    this.#settle?.(isAnswered)
    this.#settle = undefined
  }
}
