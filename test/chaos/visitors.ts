/** Runs visitors of all kinds at once and at an even pace; reports what they did, how long it took and what failed. */
import { setTimeout as pause } from 'node:timers/promises'
import { type BindPlace, bind, logIn, type SshPlace, sshForward, tlsEcho } from './neighbour-visits.ts'
import { http1, http2, StepFailure, tcp, type Visit } from './visits.ts'
import { webSocket } from './websocket-visit.ts'

/** Where visitors go; kinds whose place is omitted do not run. */
export interface Places {
  /** PEM of the server's CA. */
  readonly ca: string
  /** A stored edge with a static backend. */
  readonly edge?: string
  readonly tcpEdge?: string
  /** Endpoints of our agent. */
  readonly agent?: string
  readonly agentTcp?: string
  /** An endpoint of an official agent. */
  readonly official?: string
  readonly api?: { readonly url: string; readonly key: string }
  /** A TLS edge that ends TLS and echoes. */
  readonly tlsEdge?: string
  /** A page behind a login, whose provider asks nothing. */
  readonly login?: string
  readonly bind?: BindPlace
  readonly ssh?: SshPlace
}

export interface VisitorsOptions {
  readonly places: Places
  /** For all kinds together; lower when responses are late. */
  readonly requestsPerSecond: number
}

/** A failed visit. Times are in milliseconds since 1970, so that they mean the same in every process. */
export interface FailedVisit {
  readonly kind: string
  readonly began: number
  readonly ended: number
  readonly why: string
  readonly ports: readonly number[]
}

/** A connection that the server closed while it was idle. */
export interface ClosedVisit {
  readonly kind: string
  readonly at: number
  readonly port: number
}

export interface KindReport {
  readonly done: number
  readonly failed: number
  /** Requests that were unread when their connection was closed, and so sent again. */
  readonly repeated: number
  /** In milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface VisitorsReport {
  readonly kinds: Readonly<Record<string, KindReport>>
  /** All kinds together, without API callers. */
  readonly all: KindReport
  readonly failed: readonly FailedVisit[]
  readonly closed: readonly ClosedVisit[]
  /** Descriptions that the API acknowledged, by id. */
  readonly acknowledged: readonly (readonly [id: string, description: string])[]
}

/** One kind: how many visitors run, each one request after the other, and their share of all requests. */
interface Kind {
  readonly count: number
  readonly share: number
  readonly make: () => Visit
}

interface Tally {
  readonly tookMs: number[]
  failed: number
  repeated: number
}

/** How many failures are kept in full; more would add nothing new. */
const MAX_KEPT = 2000

export class Visitors {
  readonly #options: VisitorsOptions
  readonly #visits: Visit[] = []
  readonly #acknowledged: (readonly [string, string])[] = []
  #tallies = new Map<string, Tally>()
  #failed: FailedVisit[] = []
  #closed: ClosedVisit[] = []
  #loops: Promise<void>[] = []
  #isOver = false
  #writes = 0

  constructor(options: VisitorsOptions) {
    this.#options = options
  }

  /** Requests that were answered. */
  get done(): number {
    return [...this.#tallies.values()].reduce((sum, { tookMs }) => sum + tookMs.length, 0)
  }

  start(): void {
    const kinds = [...this.#kinds()]
    const shares = kinds.reduce((sum, [, { share }]) => sum + share, 0)
    for (const [name, { count, share, make }] of kinds) {
      const periodMs = (1000 * count * shares) / (share * this.#options.requestsPerSecond)
      for (let i = 0; i < count; i++) this.#loops.push(this.#loop(name, make(), periodMs))
    }
  }

  /** What happened since the last report. */
  report(): VisitorsReport {
    const kinds = [...this.#tallies].map(([kind, tally]) => [kind, figures([tally])] as const)
    const all = figures([...this.#tallies].filter(([kind]) => !kind.startsWith('API')).map(([, tally]) => tally))
    const report = { failed: this.#failed, closed: this.#closed, acknowledged: this.#acknowledged.splice(0) }
    this.#tallies = new Map()
    this.#failed = []
    this.#closed = []
    return { kinds: Object.fromEntries(kinds), all, ...report }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    for (const visit of this.#visits) visit.close()
  }

  *#kinds(): Iterable<readonly [name: string, Kind]> {
    const { ca, edge, tcpEdge, agent, agentTcp, official, api } = this.#options.places
    for (const [whose, url, weight] of [['edge', edge, 2] as const, ['agent', agent, 1] as const]) {
      if (url === undefined) continue
      const place = { url, ca }
      yield [`${whose} HTTP/1.1 kept`, { count: 4, share: 4 * weight, make: () => http1(place, { isKept: true }) }]
      yield [`${whose} HTTP/1.1 new`, { count: 3, share: weight, make: () => http1(place, { isKept: false }) }]
      yield [`${whose} HTTP/2 kept`, { count: 2, share: 2 * weight, make: () => http2(place, { isKept: true }) }]
      yield [`${whose} HTTP/2 new`, { count: 2, share: 0.5 * weight, make: () => http2(place, { isKept: false }) }]
      const name = `${whose} WebSocket`
      yield [name, { count: 2, share: 2, make: () => webSocket(place, (port) => this.#onClosed(name, port)) }]
    }
    for (const [name, url] of [['TCP edge', tcpEdge] as const, ['agent TCP', agentTcp] as const]) {
      if (url === undefined) continue
      const kept = `${name} kept`
      const onClosed = (port: number) => this.#onClosed(kept, port)
      yield [kept, { count: 2, share: 2, make: () => tcp(url, { isKept: true, onClosed }) }]
      yield [`${name} new`, { count: 2, share: 0.5, make: () => tcp(url, { isKept: false, onClosed: () => {} }) }]
    }
    if (official !== undefined) {
      const place = { url: official, ca }
      yield ['official agent', { count: 2, share: 0.5, make: () => http1(place, { isKept: false }) }]
    }
    const { tlsEdge, login, bind: to, ssh } = this.#options.places
    if (tlsEdge !== undefined) {
      yield ['TLS edge new', { count: 2, share: 1, make: () => tlsEcho({ url: tlsEdge, ca }) }]
    }
    if (login !== undefined) yield ['logins', { count: 2, share: 0.3, make: () => logIn({ url: login, ca }) }]
    if (to) yield ['binds', { count: 2, share: 1, make: () => bind(to) }]
    if (ssh) yield ['SSH', { count: 2, share: 0.3, make: () => sshForward(ssh) }]
    if (!api) return
    const { url, key } = api
    const read = { method: 'GET', path: '/ip_policies?limit=1', key } as const
    yield ['API reads', { count: 1, share: 0.25, make: () => http1({ url }, { isKept: true, call: read }) }]
    yield ['API writes', { count: 1, share: 0.25, make: () => this.#writer(url, key) }]
  }

  #writer(url: string, key: string): Visit {
    const body = () => JSON.stringify({ description: `write ${++this.#writes}` })
    const answered = (text: string) => {
      const { id, description } = JSON.parse(text) as { id: string; description: string } // of our own API
      this.#acknowledged.push([id, description])
    }
    return http1({ url }, { isKept: false, call: { method: 'POST', path: '/ip_policies', key, body, answered } })
  }

  async #loop(kind: string, visit: Visit, periodMs: number): Promise<void> {
    this.#visits.push(visit)
    let next = performance.now() + Math.random() * periodMs
    while (!this.#isOver) {
      await pause(Math.max(0, next - performance.now()))
      if (this.#isOver) return
      const began = performance.now()
      try {
        const { isRepeated } = await visit.step()
        const tally = this.#tally(kind)
        tally.tookMs.push(performance.now() - began)
        if (isRepeated) tally.repeated++
      } catch (error) {
        this.#onFailed(kind, began, error)
      }
      // Visitors do not catch up on late requests, which would overload the machine.
      next = Math.max(next + periodMs, performance.now())
    }
  }

  #onFailed(kind: string, began: number, error: unknown): void {
    this.#tally(kind).failed++
    if (this.#failed.length >= MAX_KEPT) return
    const why = error instanceof Error ? error.message : String(error)
    const ports = error instanceof StepFailure ? error.ports : []
    this.#failed.push({ kind, began: wallClock(began), ended: wallClock(performance.now()), why, ports })
  }

  #onClosed(kind: string, port: number): void {
    if (!this.#isOver) this.#closed.push({ kind, at: wallClock(performance.now()), port })
  }

  #tally(kind: string): Tally {
    const tally = this.#tallies.get(kind) ?? { tookMs: [], failed: 0, repeated: 0 }
    this.#tallies.set(kind, tally)
    return tally
  }
}

function figures(tallies: readonly Tally[]): KindReport {
  const sorted = Float64Array.from(tallies.flatMap(({ tookMs }) => tookMs)).sort()
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
  const sum = (key: 'failed' | 'repeated') => tallies.reduce((total, tally) => total + tally[key], 0)
  const counts = { done: sorted.length, failed: sum('failed'), repeated: sum('repeated') }
  return { ...counts, p50: at(0.5), p99: at(0.99), max: at(1) }
}

function wallClock(at: number): number {
  return performance.timeOrigin + at
}
