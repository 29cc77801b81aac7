/** Lets a node, its control process or the database stand still, while another owner asks for the names of live agents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Random, seeded } from '../fuzz/hostile-documents.ts'
import { startPostgres } from '../support/postgres.ts'
import {
  agentWith,
  askFor,
  isServedAt,
  type StillNode,
  signalTo,
  startTwoNodes,
  type TwoNodes,
} from '../support/two-nodes.ts'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { childPids } from './children.ts'

export interface StillOptions {
  readonly rounds: number
  /** How many pairs of nodes share the rounds, side by side. */
  readonly pairs: number
  readonly workers: number
  /** How long anything stands still at most, in seconds. */
  readonly seconds: number
  readonly seed: number
  readonly progress: (line: string) => void
}

export interface StillReport {
  readonly seed: number
  readonly rounds: Readonly<Record<Fault, number>>
  /** What the other owner was answered, by answer. */
  readonly answers: Readonly<Record<string, number>>
  /** How long after the end the slowest name was served again, in milliseconds. */
  readonly slowestMs: number
  readonly faults: readonly string[]
}

const FAULTS = ['node', 'control process', 'database'] as const

type Fault = (typeof FAULTS)[number]

/** How long after the end all must be served again, in milliseconds. */
const BACK_MS = 30_000

/** Pause of the other owner between two questions, in milliseconds. */
const ASK_AGAIN_MS = 250

/** The names of the agents at both nodes. */
const NAMES = [
  ['one.still.test', 'two.still.test'],
  ['three.still.test', 'four.still.test'],
] as const

export async function still(owner: Owner, options: StillOptions): Promise<StillReport> {
  const { rounds, pairs, seed, progress } = options
  const report = { seed, rounds: { node: 0, 'control process': 0, database: 0 }, answers: {}, slowestMs: 0, faults: [] }
  const left = { rounds }
  const all = Array.from({ length: Math.min(pairs, rounds) }, async (_, i) => {
    const pair = new StillPair(i + 1, seeded(seed * 16 + i), options, report)
    await pair.start(owner)
    progress(`pair ${i + 1} runs`)
    while (left.rounds-- > 0) await pair.round()
    await pair.close()
  })
  await Promise.all(all)
  return report
}

interface Writable {
  readonly rounds: Record<Fault, number>
  readonly answers: Record<string, number>
  slowestMs: number
  readonly faults: string[]
}

/** Two nodes, their database, an agent at each, and the other owner. */
class StillPair {
  readonly #number: number
  readonly #random: Random
  readonly #options: StillOptions
  readonly #report: Writable
  #world: TwoNodes | undefined
  #database: readonly number[] = []
  #round = 'before the first round'
  #isOver = false
  #asking: Promise<void>[] = []
  #agents: readonly { readonly lost: string[]; readonly events: string[] }[] = []

  constructor(number: number, random: Random, options: StillOptions, report: Writable) {
    this.#number = number
    this.#random = random
    this.#options = options
    this.#report = report
  }

  async start(owner: Owner): Promise<void> {
    const { workers } = this.#options
    const postgres = await startPostgres()
    owner.after(() => postgres.stop())
    const postmaster = Number(readFileSync(join(postgres.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
    this.#database = [postmaster]
    const world = await startTwoNodes(owner, { databaseUrl: await postgres.createDatabase(), workers })
    this.#world = world
    this.#agents = await Promise.all(world.nodes.map((node, i) => agentWith(owner, world, node, NAMES[i] ?? [])))
    await this.#served('at first')
    this.#asking = world.nodes.flatMap((node) => NAMES.flat().map((name) => this.#ask(node, name, world)))
  }

  async round(): Promise<void> {
    const { nodes } = this.#world ?? { nodes: [] }
    const fault = FAULTS[this.#random(FAULTS.length)] ?? 'node'
    const node = nodes[this.#random(nodes.length)]
    const forMs = 1000 + this.#random(Math.max(1, this.#options.seconds * 1000 - 999))
    const what = fault === 'database' ? fault : `${fault} of ${node?.name}`
    this.#round = `pair ${this.#number}, ${what} for ${(forMs / 1000).toFixed(1)} s`
    this.#report.rounds[fault]++
    const pids =
      fault === 'database' ? this.#processesOfDatabase() : fault === 'node' ? node?.all() : [node?.control() ?? 0]
    for (const pid of pids ?? []) signalTo(pid, 'SIGSTOP')
    await pause(forMs)
    for (const pid of (pids ?? []).toReversed()) signalTo(pid, 'SIGCONT')
    this.#options.progress(`${new Date().toISOString().slice(14, 23)} ${this.#round}; goes on`)
    const begun = performance.now()
    await this.#served(this.#round)
    const tookMs = performance.now() - begun
    this.#report.slowestMs = Math.max(this.#report.slowestMs, Math.round(tookMs))
    for (const { lost, events } of this.#agents) {
      for (const message of lost.splice(0)) this.#fault(`an agent lost a name: ${message}`)
      events.length = 0
    }
    this.#options.progress(`${this.#round}; all is served ${(tookMs / 1000).toFixed(1)} s later`)
  }

  async close(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#asking)
  }

  #processesOfDatabase(): number[] {
    return this.#database.flatMap((pid) => [pid, ...childPids(pid)])
  }

  #fault(what: string): void {
    for (const [i, { events }] of this.#agents.entries()) {
      for (const event of events.splice(0)) this.#options.progress(`  pair ${this.#number}, agent ${i + 1}: ${event}`)
    }
    this.#report.faults.push(`${this.#round}: ${what}`)
    this.#options.progress(`${new Date().toISOString().slice(14, 23)} FAULT in ${this.#round}: ${what}`)
  }

  async #ask(node: StillNode, name: string, { stranger }: TwoNodes): Promise<void> {
    while (!this.#isOver) {
      const answer = await askFor(node, name, stranger)
      this.#report.answers[answer] = (this.#report.answers[answer] ?? 0) + 1
      if (answer === 'got') this.#fault(`${name} went to another owner at ${node.name}`)
      await pause(ASK_AGAIN_MS)
    }
  }

  /** Every name is served at both nodes, in time. */
  async #served(when: string): Promise<void> {
    const world = this.#world
    if (!world) return
    const all = world.nodes.flatMap((node) =>
      NAMES.flat().map(async (name) => {
        const isServed = (): Promise<boolean> => isServedAt(node, name, world)
        await until(`${name} is served at ${node.name}`, isServed, { limitMs: BACK_MS }).catch((error: unknown) =>
          this.#fault(`${when}: ${String(error)}`),
        )
      }),
    )
    await Promise.all(all)
  }
}
