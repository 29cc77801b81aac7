/** Fills a new database with HTTPS edges as the API would have stored them, each with its name, routes and a backend. */
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { openStore } from '../../src/control-plane/store/store.ts'
import type { Writer } from '../../src/control-plane/store/writer.ts'
import { timestamp } from '../../src/lib/clock.ts'
import { IdSource } from '../../src/lib/ids.ts'

/** Edges written in one transaction. */
const AT_A_TIME = 1000

/** The backend address of routes until a row sets another; it is never dialled. */
const NOWHERE = '127.0.0.1:9'

export interface SeededEdge {
  readonly id: string
  readonly name: string
  /** The route for `/`. */
  readonly routeId: string
}

export interface SeededStore {
  readonly dataDir: string
  readonly edges: readonly SeededEdge[]
}

export interface Seed {
  readonly edges: number
  /** Path prefixes of the routes that the first edge has besides `/`. */
  readonly routes?: readonly string[]
}

export async function seedStore(dataDir: string, { edges: count, routes = [] }: Seed): Promise<SeededStore> {
  const store = await openStore(`sqlite:${join(dataDir, 'postern.db')}`)
  const source = new IdSource({ now: Date.now })
  const edges: SeededEdge[] = []
  try {
    const backendId = source.next('bkdsc_')
    await store.write(async (writer) => {
      await insert(writer, backendId, 'static_backend', { address: NOWHERE, tls: { enabled: false } })
      writer.changed('static_backend', backendId)
    })
    while (edges.length < count) {
      await store.write(async (writer) => {
        for (let i = 0; i < AT_A_TIME && edges.length < count; i++) {
          const name = `edge-${edges.length}.bench.test`
          const id = source.next('edghts_')
          await insert(writer, id, 'https_edge', { hostports: [`${name}:443`] })
          await writer.setClaims(id, 'edge_name', [name], true)
          const addRoute = async (match: string): Promise<string> => {
            const routeId = source.next('edghtsrt_')
            await insert(writer, routeId, 'https_edge_route', { match_type: 'path_prefix', match }, id)
            await writer.setClaims(routeId, 'route_match', [`${id} ${match}`], true)
            await writer.putModule(routeId, 'backend', { enabled: true, backend_id: backendId })
            await writer.setReferences(routeId, 'backend', [backendId], true)
            return routeId
          }
          const routeId = await addRoute('/')
          if (edges.length === 0) for (const match of routes) await addRoute(match)
          writer.changed('https_edge', id)
          edges.push({ id, name, routeId })
        }
      })
      // Without this pause no signal would be handled until all edges are stored.
      await setImmediate()
    }
  } finally {
    await store.close()
  }
  return { dataDir, edges }
}

async function insert(
  writer: Writer,
  id: string,
  kind: string,
  fields: Readonly<Record<string, unknown>>,
  parentId: string | null = null,
): Promise<void> {
  const createdAt = timestamp(Date.now())
  const all = { description: '', metadata: '', ...fields }
  await writer.insert({ id, kind, parentId, ownerId: null, createdAt, fields: all })
}
