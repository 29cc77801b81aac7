/** Measures what a change costs: the time from the API call until a visitor sees it, and how many edges are read again. */
import { Agent, get } from 'node:https'
import type { Entrance } from '../entrance.ts'
import { median } from '../measure.ts'
import type { Unit } from '../result.ts'
import { LOOPBACK, retry } from '../stage/ports.ts'
import { grouped } from '../table.ts'
import { type Bar, type Compared, type Comparison, compare, type EdgeLane } from './compare.ts'
import { lead, putModule, type Scene, type Side, spread } from './scene.ts'
import type { SeededEdge, SeededStore } from './seed.ts'

/** How many edges are changed, in turn. */
const CHANGED = 10

/** D42: how soon a change must apply to new requests, in milliseconds. */
const IN_FORCE_MS = 200

/** How long to wait for a change before it counts as lost, in milliseconds. */
const LOST_MS = 10_000

const SAME_COST: Bar = { cost: 1.1 }

const HEADER = 'x-bench'

const unit: Unit = { speed: 'changes/s', speedPer: 1, cpu: 'ms/change', cpuPer: 1000 }

export interface ChangeResult {
  readonly name: string
  /** Milliseconds from sending the API call until a visitor saw the change: the median, and the longest. */
  readonly medianMs: number
  readonly longestMs: number
  /** The longest time from the answer of the API until a visitor saw the change, in milliseconds. */
  readonly afterAnswerMs: number
  readonly isWithinBar: boolean
  /** Edges that the server read again for each change. */
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
  // On separate servers, because it is counted from their debug log, and writing that costs time.
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

/** Makes changes one after the other, each on another edge, and waits until a visitor sees each. */
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
        if (performance.now() - answered > LOST_MS)
          throw new Error(`a visitor did not see a change within ${LOST_MS} ms`)
      }
      const seen = performance.now()
      times.whole.push(seen - sent)
      times.afterAnswer.push(seen - answered)
      amount++
    }
    return { amount, seconds: (performance.now() - begun) / 1000 }
  }
}

/** Sends one request; resolves with the header that changes. */
type Visit = () => Promise<string | undefined>

/** A visitor with one kept-alive connection, so that waiting does not cost more than the change. */
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

/** How many edges the server reads again for one change, according to its log. */
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

/** The ids of the edges in a log line about changed edges. */
export function readInLine(line: string): string[] {
  if (!line.includes('"edges changed"')) return []
  // The log writes it in this form.
  const { edges } = JSON.parse(line) as { edges: string[] }
  return edges
}
