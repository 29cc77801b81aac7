/** What a change costs: from the write at the API until a visitor sees it, and how many edges are read again for it. */
import { Agent, get } from 'node:https'
import type { Entrance } from '../entrance.ts'
import { median } from '../measure.ts'
import type { Unit } from '../result.ts'
import { LOOPBACK, retry } from '../stage/ports.ts'
import { grouped } from '../table.ts'
import { type Bar, type Compared, type Comparison, compare, type EdgeLane } from './compare.ts'
import { lead, putModule, type Scene, type Side, spread } from './scene.ts'
import type { SeededEdge, SeededStore } from './seed.ts'

/** Edges that are changed in turn. */
const CHANGED = 10

/** D42: a change is in force for new requests after this long, in milliseconds. */
const IN_FORCE_MS = 200

/** How long a change is waited for before it counts as lost, in milliseconds. */
const LOST_MS = 10_000

const SAME_COST: Bar = { cost: 1.1 }

const HEADER = 'x-bench'

const unit: Unit = { speed: 'changes/s', speedPer: 1, cpu: 'ms/change', cpuPer: 1000 }

export interface ChangeResult {
  readonly name: string
  /** Milliseconds from sending the write until a visitor saw it: the median, and the longest. */
  readonly medianMs: number
  readonly longestMs: number
  /** Milliseconds from the answer of the API until a visitor saw it, at most. */
  readonly afterAnswerMs: number
  readonly isWithinBar: boolean
  /** Edges that were read again, for each change. */
  readonly readAgain: number
}

interface Times {
  readonly whole: number[]
  readonly afterAnswer: number[]
}

export async function measureChange(
  scene: Scene,
  comparison: Omit<Comparison, 'unit'>,
): Promise<{ compared: Compared[]; changes: ChangeResult[] }> {
  const { few, many } = scene.options
  const stores = [
    { name: `${grouped(few)} edges`, store: await scene.fewEdges(), bar: null },
    { name: `${grouped(many)} edges`, store: await scene.manyEdges(), bar: SAME_COST },
  ]
  // On servers of their own, since it is their log that tells, and writing it costs time.
  const readAgain = await Promise.all(stores.map(({ store }) => countReadAgain(scene, store)))
  const times = stores.map((): Times => ({ whole: [], afterAnswer: [] }))
  const lanes = await Promise.all(
    stores.map(async ({ name, store, bar }, i): Promise<EdgeLane> => {
      const side = await scene.serve(store)
      const run = await changer(side, times[i] ?? { whole: [], afterAnswer: [] })
      return { name, link: 'API and edge', isOurs: true, bar, pids: () => [side.program.pid], run }
    }),
  )
  const compared = await compare(lanes, { ...comparison, unit })
  const changes = stores.map(({ name }, i): ChangeResult => {
    const { whole = [], afterAnswer = [] } = times[i] ?? {}
    const late = Math.max(...afterAnswer)
    return {
      name,
      medianMs: median(whole),
      longestMs: Math.max(...whole),
      afterAnswerMs: late,
      isWithinBar: late <= IN_FORCE_MS,
      readAgain: readAgain[i] ?? Number.NaN,
    }
  })
  return { compared, changes }
}

/** Makes one change after the other, each on another edge, and each waited for until it is in force. */
async function changer(side: Side, times: Times): Promise<EdgeLane['run']> {
  const edges = spread(side.store, CHANGED)
  const visits = new Map<SeededEdge, Visit>()
  for (const edge of edges) {
    const body = { body: 'ok', headers: { 'content-type': 'text/plain' } }
    visits.set(edge, visitor(await lead(side, edge, { kind: 'http_response', body })))
  }
  let changes = 0
  return async (seconds) => {
    const begun = performance.now()
    let amount = 0
    while (performance.now() - begun < seconds * 1000) {
      const edge = edges[changes++ % edges.length]
      const visit = edge && visits.get(edge)
      if (!visit) throw new Error('there is no edge to change')
      const value = String(changes)
      const sent = performance.now()
      await putModule(side.api, edge, 'response_headers', { add: { [HEADER]: value } })
      const answered = performance.now()
      while ((await visit()) !== value) {
        if (performance.now() - answered > LOST_MS) throw new Error('a change did not come into force')
      }
      const seen = performance.now()
      times.whole.push(seen - sent)
      times.afterAnswer.push(seen - answered)
      amount++
    }
    return { amount, seconds: (performance.now() - begun) / 1000 }
  }
}

/** One request; gives the header that changes. */
type Visit = () => Promise<string | undefined>

/** A visitor who keeps one connection, as the waiting must not cost more than the change. */
function visitor({ port, tls }: Entrance): Visit {
  const name = tls?.name ?? ''
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const options = { host: LOOPBACK, port, servername: name, headers: { host: name }, ca: tls?.ca, agent }
  return () =>
    new Promise((resolve, reject) => {
      get(options, (answer) => {
        const { [HEADER]: value } = answer.headers
        answer.resume().once('end', () => resolve(Array.isArray(value) ? value[0] : value))
      }).once('error', reject)
    })
}

/** How many edges the server reads again for one change, as its log says. */
async function countReadAgain(scene: Scene, store: SeededStore): Promise<number> {
  const read: string[] = []
  const onLine = (line: string): void => void read.push(...readInLine(line))
  const side = await scene.serve(store, { logLevel: 'debug', onLine })
  const edges = spread(store, CHANGED)
  for (const edge of edges) await putModule(side.api, edge, 'response_headers', { add: { [HEADER]: 'counted' } })
  await retry(
    async () => {
      if (!edges.every(({ id }) => read.includes(id))) throw new Error('a changed edge was not read again')
    },
    { timeoutMs: LOST_MS },
  )
  await side.place.stage.close()
  return read.length / edges.length
}

/** The edges that a line of the log tells of. */
export function readInLine(line: string): string[] {
  if (!line.includes('"edges changed"')) return []
  // As the log writes it.
  const { edges } = JSON.parse(line) as { edges: string[] }
  return edges
}
