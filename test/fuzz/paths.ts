/**
 * Has an edge decide on generated paths, and sends those that it forwards to real routers: no path that passes through
 * an open route may lead a router to a handler of a guarded one.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Edge } from '../../src/data-plane/edge/compiled-edge.ts'
import { chooseRoute } from '../../src/data-plane/edge/proxy/find-route.ts'
import { splitTarget } from '../../src/data-plane/edge/proxy/path-readings.ts'
import { testEdge } from '../../src/data-plane/edge/testing/test-http-plane.ts'
import { hostOf, type PathRouter } from './path-routers.ts'
import { type Attempt, attempts, type PathTable, pathTables } from './path-tables.ts'

/** The match of the route that an edge forwards a path to; undefined when it is not forwarded. */
export type Decide = (edge: Edge, path: string) => string | undefined

/** Decides like a real edge. */
export const decideAsEdge: Decide = (edge, path) => {
  const route = chooseRoute(edge, path)
  return typeof route === 'string' ? undefined : route.id
}

export interface PathTally {
  /** Pairs of a router and a path that was forwarded to it. */
  pairs: number
  /** Paths that were not forwarded. */
  refused: number
  /** Answers of handlers, by router. */
  readonly answered: Map<string, number>
  /** Paths that got past a guard. */
  readonly findings: string[]
}

export interface PathRun {
  readonly routers: readonly PathRouter[]
  readonly seed: number
  readonly pairs: number
  readonly decide?: Decide
}

/** How many paths are sent to all routers at once. */
const BATCH = 512

/** Pending requests on one connection: few, since those after one that nginx refuses are sent again. */
const PIPELINED = 32

/** How often a connection may close before it has answered anything. */
const MAX_CLOSED = 5

/** How many findings end the run: there are many or none. */
const MAX_FINDINGS = 20

export async function runPaths({ routers, seed, pairs, decide = decideAsEdge }: PathRun): Promise<PathTally> {
  const tally: PathTally = { pairs: 0, refused: 0, answered: new Map(), findings: [] }
  const edges = new Map(pathTables.map((table) => [table, edgeOf(table)]))
  const source = attempts(seed)
  const pipelines = routers.map((router) => ({ router, pipeline: new Pipeline(router) }))
  try {
    while (tally.pairs < pairs && tally.findings.length < MAX_FINDINGS) {
      const batch: (Attempt & { readonly chosen: string })[] = []
      while (batch.length < Math.min(BATCH, Math.ceil((pairs - tally.pairs) / routers.length))) {
        const attempt = source.next().value
        const chosen = decide(edges.get(attempt.table) as Edge, splitTarget(attempt.path).path) // each table has one
        if (chosen === undefined) tally.refused++
        else batch.push({ ...attempt, chosen })
      }
      await Promise.all(
        pipelines.map(async ({ router: { name }, pipeline }) => {
          const handlers = await pipeline.handlersOf(batch)
          for (const [i, attempt] of batch.entries()) judge(attempt, name, handlers[i])
        }),
      )
    }
  } finally {
    for (const { pipeline } of pipelines) pipeline.close()
  }
  return tally

  function judge({ table, path, chosen }: Attempt & { chosen: string }, name: string, handler: string | undefined) {
    tally.pairs++
    if (handler === undefined) return
    tally.answered.set(name, (tally.answered.get(name) ?? 0) + 1)
    if (isOpen(table, chosen) && !isOpen(table, handler))
      tally.findings.push(`${name}, ${table.name}: ${path} passes by ${chosen} and reaches ${handler}`)
  }
}

function edgeOf({ name, parts }: PathTable): Edge {
  return testEdge({ names: [`${name}.test`], routes: parts.map(({ match, isExact = false }) => ({ match, isExact })) })
}

function isOpen({ parts }: PathTable, match: string): boolean {
  const part = parts.find((each) => each.match === match)
  if (!part) throw new Error(`no part is called ${match}`)
  return part.isOpen
}

/** Pipelines requests on one connection, and opens another when a router closes it. */
class Pipeline {
  readonly #router: PathRouter
  #socket: Socket | undefined

  constructor(router: PathRouter) {
    this.#router = router
  }

  close(): void {
    this.#socket?.destroy()
  }

  /** The names of the handlers that the paths led to; undefined for none. */
  async handlersOf(asked: readonly Attempt[]): Promise<(string | undefined)[]> {
    const answers: (string | undefined)[] = []
    let closed = 0
    while (answers.length < asked.length) {
      const before = answers.length
      await this.#ask(asked.slice(before, before + PIPELINED), answers)
      closed = answers.length === before ? closed + 1 : 0
      if (closed > MAX_CLOSED) throw new Error(`${this.#router.name} does not answer to ${asked[before]?.path}`)
    }
    return answers
  }

  /** Reads answers until all are there or the connection is closed. */
  async #ask(asked: readonly Attempt[], answers: (string | undefined)[]): Promise<void> {
    const socket = await this.#connected()
    const wanted = answers.length + asked.length
    let rest = ''
    socket.write(
      asked.map(({ table, path }) => `GET ${path} HTTP/1.1\r\nHost: ${hostOf(table)}\r\n\r\n`).join(''),
      'latin1',
    )
    await new Promise<void>((resolve) => {
      const done = (): void => {
        socket.off('data', onData).off('close', done)
        resolve()
      }
      const onData = (chunk: Buffer): void => {
        rest = takeAnswers(rest + chunk.toString('latin1'), answers)
        if (answers.length === wanted) done()
      }
      socket.on('data', onData).on('close', done)
    })
  }

  async #connected(): Promise<Socket> {
    if (this.#socket?.writable && !this.#socket.destroyed) return this.#socket
    const socket = connect(this.#router.address)
    // A router that closes before it has read everything may reset; its earlier answers count.
    socket.on('error', () => {}).on('end', () => socket.destroy())
    this.#socket = socket
    await once(socket, 'connect')
    return socket
  }
}

/** Takes all complete answers from `text`, and returns the rest. */
function takeAnswers(text: string, answers: (string | undefined)[]): string {
  let at = 0
  for (;;) {
    const headEnd = text.indexOf('\r\n\r\n', at)
    if (headEnd < 0) return text.slice(at)
    const head = text.slice(at, headEnd)
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? []
    if (length === undefined) throw new Error(`an answer without a length: ${head}`)
    const end = headEnd + 4 + Number(length)
    if (text.length < end) return text.slice(at)
    const isHandler = head.startsWith('HTTP/1.1 200 ')
    answers.push(isHandler ? decodeURIComponent(text.slice(headEnd + 4, end)) : undefined)
    at = end
  }
}
