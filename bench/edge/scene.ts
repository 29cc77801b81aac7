/** What a row uses: an upstream, servers with stored edges, and entrances to these edges. */
import { readFile } from 'node:fs/promises'
import type { ApiClient } from '../../test/support/api-client.ts'
import { awaitAnswer, type Entrance } from '../entrance.ts'
import { paths, SMALL_BYTES, startUpstream } from '../nginx.ts'
import { type Place, type PosternServer, type ServerOptions, startPosternServer } from '../postern.ts'
import { freePort, LOOPBACK } from '../stage/ports.ts'
import type { Stage, Stages } from '../stage/stage.ts'
import type { Options } from './options.ts'
import type { SeededEdge, SeededStore } from './seed.ts'
import type { Stores } from './stores.ts'

export interface SceneOptions {
  readonly stages: Stages
  readonly stores: Stores
  readonly options: Options
  /** The path of a program; throws if it is not installed. */
  readonly path: (program: string) => string
}

/** A server running on a store. */
export interface Side extends PosternServer {
  readonly place: Place
  readonly store: SeededStore
}

export class Scene {
  readonly options: Options
  readonly path: (program: string) => string
  /** For generators and the upstream. */
  readonly stage: Stage
  readonly #scene: SceneOptions
  readonly #opened: Stage[] = []

  constructor(row: string, scene: SceneOptions) {
    this.options = scene.options
    this.path = scene.path
    this.#scene = scene
    this.stage = this.open(row)
  }

  open(name: string): Stage {
    const stage = this.#scene.stages.open(name)
    this.#opened.push(stage)
    return stage
  }

  /** Starts nginx as the upstream; resolves with its port. */
  async upstream(): Promise<number> {
    const port = await freePort()
    await startUpstream(this.stage, { nginx: this.path('nginx'), port })
    return port
  }

  fewEdges(): Promise<SeededStore> {
    return this.#scene.stores.get('few-edges', { edges: this.options.few })
  }

  manyEdges(): Promise<SeededStore> {
    return this.#scene.stores.get('many-edges', { edges: this.options.many })
  }

  /** A store with few edges, the first of which has these routes besides `/`. */
  withRoutes(name: string, routes: readonly string[]): Promise<SeededStore> {
    return this.#scene.stores.get(name, { edges: this.options.few, routes })
  }

  async serve(store: SeededStore, options: Omit<ServerOptions, 'dataDir'> = {}): Promise<Side> {
    const place = { stage: this.open('server'), nodeOptions: this.options.nodeOptions }
    const server = await startPosternServer(place, { ...options, dataDir: store.dataDir })
    return { ...server, place, store }
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((stage) => stage.close()))
  }
}

/** Gives an edge a new backend of this kind; resolves with the entrance. */
export async function lead(
  { api, httpsPort, caFile }: Side,
  edge: SeededEdge,
  { kind, body }: { kind: 'static' | 'tunnel_group' | 'http_response'; body: unknown },
): Promise<Entrance> {
  const { id } = await api.create(`/backends/${kind}`, body)
  await putModule(api, edge, 'backend', { backend_id: id })
  return { host: LOOPBACK, port: httpsPort, tls: { name: edge.name, ca: await readFile(caFile, 'utf8') } }
}

/** Sends an edge to the upstream without a tunnel; resolves with the entrance once it answers. */
export async function leadToUpstream(side: Side, edge: SeededEdge, upstreamPort: number): Promise<Entrance> {
  const body = { address: `${LOOPBACK}:${upstreamPort}` }
  const entrance = await lead(side, edge, { kind: 'static', body })
  await awaitAnswer(entrance, paths.small, SMALL_BYTES)
  return entrance
}

/** Writes a module of the route `/`. */
export async function putModule(api: ApiClient, edge: SeededEdge, module: string, body: unknown): Promise<void> {
  await api.put(`/edges/https/${edge.id}/routes/${edge.routeId}/${module}`, body)
}

/** This many edges, evenly picked from the store. */
export function spread({ edges }: SeededStore, count: number): SeededEdge[] {
  const step = Math.max(1, Math.floor(edges.length / count))
  return edges.filter((_, i) => i % step === 0).slice(0, count)
}
