/** A platform whose edges are made through its API and visited over real sockets; it closes with the suite. */
import assert from 'node:assert/strict'
import type { ApiClient, Json } from '../../support/api-client.ts'
import { type TcpRange, tcpRange } from '../../support/free-port.ts'
import { metric } from '../../support/metrics.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../../support/platform.ts'
import { visitsOfAll } from '../../support/test-workers.ts'
import { until } from '../../support/until.ts'
import type { Owner, Upstream } from '../../support/upstream.ts'
import { type Answer, type Ask, ask } from './visitor.ts'

/** Modules by name, as the API takes them. */
export type Modules = Readonly<Record<string, Json>>

export interface RouteOptions extends Modules {
  readonly match?: string
  readonly match_type?: 'exact_path' | 'path_prefix'
}

export interface HttpsEdge {
  readonly id: string
  /** The first of its names. */
  readonly name: string
  /** `/edges/https/<id>`. */
  readonly path: string
  /** In the order of the request. */
  readonly routes: readonly { readonly id: string; readonly path: string }[]
}

/** A TLS or TCP edge. */
export interface RawEdge {
  readonly id: string
  readonly name: string
  readonly port: number
  readonly path: string
}

/** The name of an edge that answers a number, which tells a world which changes are in force. */
export const MARK = 'mark.edge.test'

/** How many ports one world has for TCP edges. */
const TCP_PORTS = 12

/** Short, so that connections that a test leaves open do not delay its end. */
const flags = { 'drain-timeout': '1s' }

export class World implements Owner {
  readonly platform: Platform
  readonly api: ApiClient
  readonly #range: TcpRange
  readonly #tcpPorts: number[]
  /** The backend of `MARK`. */
  readonly #mark: string
  readonly #closers: (() => unknown)[] = []
  #marks = 0
  #names = 0

  private constructor(platform: Platform, range: TcpRange, mark: string) {
    this.platform = platform
    this.api = platform.admin
    this.#range = range
    this.#tcpPorts = [...range.ports]
    this.#mark = mark
  }

  static async start(options: PlatformOptions = {}): Promise<World> {
    const range = await tcpRange(TCP_PORTS)
    const platform = await startPlatform({ ...options, flags: { ...flags, ...range.flags, ...options.flags } })
    const { id } = await platform.admin.create('/backends/http_response', { body: '0' })
    const world = new World(platform, range, `/backends/http_response/${id}`)
    await world.httpsEdge({ names: [MARK], routes: [{ backend: { backend_id: id } }] })
    return world
  }

  /** Starts again on the data and ports of a stopped world. */
  static async startAgain(before: World, options: PlatformOptions): Promise<World> {
    const range = { ...before.#range, ports: [] }
    const platform = await startPlatform({ ...options, flags: { ...flags, ...range.flags, ...options.flags } })
    return new World(platform, range, before.#mark)
  }

  /** For services of the whole suite. */
  after(close: () => unknown): void {
    this.#closers.push(close)
  }

  async stop(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
    await this.platform.stop()
  }

  /** A name that no other edge has. */
  name(): string {
    return `e${++this.#names}.edge.test`
  }

  /** A port for a TCP edge, different for each edge of this world. */
  tcpPort(): number {
    const port = this.#tcpPorts.shift()
    assert.ok(port, 'a world has no more ports for TCP edges')
    return port
  }

  /** Creates an HTTPS edge, in force on return; `modules` are its own, each route has its modules with its match. */
  async httpsEdge({
    names = [this.name()],
    modules = {},
    routes = [],
  }: {
    names?: readonly string[]
    modules?: Modules
    routes?: readonly RouteOptions[]
  }): Promise<HttpsEdge> {
    const edge = await this.api.create('/edges/https', { hostports: names.map((name) => `${name}:443`), ...modules })
    const path = `/edges/https/${edge.id}`
    const made: { id: string; path: string }[] = []
    for (const route of routes) {
      const { id } = await this.api.create(`${path}/routes`, { match_type: 'path_prefix', match: '/', ...route })
      made.push({ id, path: `${path}/routes/${id}` })
    }
    await this.inForce()
    return { id: edge.id, name: names[0] ?? '', path, routes: made }
  }

  /** Creates an HTTPS edge with one route whose backend is `upstream`. */
  async httpsTo(
    upstream: Upstream,
    { modules, ...route }: { modules?: Modules } & RouteOptions = {},
  ): Promise<HttpsEdge> {
    const backend = await this.toAddress(upstream)
    return this.httpsEdge({ ...(modules && { modules }), routes: [{ backend, ...route }] })
  }

  /** Creates a TLS edge, in force on return. */
  async tlsEdge(modules: Modules, names: readonly string[] = [this.name()]): Promise<RawEdge> {
    const { id } = await this.api.create('/edges/tls', { hostports: names.map((name) => `${name}:443`), ...modules })
    await this.inForce()
    return { id, name: names[0] ?? '', port: this.platform.httpsPort, path: `/edges/tls/${id}` }
  }

  /** Creates a TCP edge, in force on return. */
  async tcpEdge(modules: Modules, port: number = this.tcpPort()): Promise<RawEdge> {
    const { id } = await this.api.create('/edges/tcp', { hostports: [`tcp.edge.test:${port}`], ...modules })
    await this.inForce()
    return { id, name: '', port, path: `/edges/tcp/${id}` }
  }

  /** A `backend` module for a service that the server dials itself. */
  async toAddress({ address }: { readonly address: string }, { tls = false } = {}): Promise<{ backend_id: string }> {
    return this.toBackend('static', { address, tls: { enabled: tls } })
  }

  /** A `backend` module for a new backend of this kind. */
  async toBackend(kind: string, fields: Json): Promise<{ backend_id: string }> {
    const { id } = await this.api.create(`/backends/${kind}`, fields)
    return { backend_id: id }
  }

  /** Creates an IP policy with these networks. */
  async ipPolicy({ allow = [], deny = [] }: { allow?: readonly string[]; deny?: readonly string[] }): Promise<string> {
    const { id } = await this.api.create('/ip_policies')
    for (const cidr of allow) await this.api.create('/ip_policy_rules', { cidr, action: 'allow', ip_policy_id: id })
    for (const cidr of deny) await this.api.create('/ip_policy_rules', { cidr, action: 'deny', ip_policy_id: id })
    return id
  }

  /** Resolves when all changes so far are in force; edges apply changes in order. */
  async inForce(): Promise<void> {
    const body = String(++this.#marks)
    await this.api.update(this.#mark, { body })
    const isAt = async (): Promise<boolean> => {
      // Before its edge is in force at all, the name has a certificate that the visitor does not accept.
      const answer = await this.ask(MARK).catch(() => undefined)
      return answer !== undefined && Number(answer.text) >= Number(body)
    }
    // Each worker applies changes by itself, and any of them may answer.
    const visitors = Array.from({ length: visitsOfAll(this.platform.planeCount) }, () => isAt)
    await until('a change is in force', async () =>
      (await Promise.all(visitors.map((visit) => visit()))).every(Boolean),
    )
    // Costly parts, such as policies, are compiled later, so that they do not delay other edges.
    await until('changes are compiled', async () => {
      return (await metric(this.platform.metricsUrl, 'postern_edges_coming')) === 0
    })
  }

  /** Sends a visitor's request to the edge of `name`. */
  ask(name: string, about: Ask = {}): Promise<Answer> {
    return ask({ name, port: this.platform.httpsPort, ca: this.platform.ca }, about)
  }

  /** Lines of the log with this message, parsed. */
  logged(message: string): Json[] {
    // One write may hold several lines.
    const lines = this.platform.log.join('').split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message)
  }
}
