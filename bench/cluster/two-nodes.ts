/** Two complete nodes on one database that know of each other. */
import { join } from 'node:path'
import { type Place, type PosternServer, startPosternServer } from '../postern.ts'
import { LOOPBACK, retry } from '../stage/ports.ts'
import type { Stage, Stages } from '../stage/stage.ts'
import type { Database } from './database.ts'

/** How long nodes may take to learn of each other, in milliseconds: a few renewals of their leases. */
const MEET_MS = 15_000

export interface BenchNode extends PosternServer {
  readonly place: Place
}

export interface TwoNodes {
  /** The node that agents connect to. */
  readonly own: BenchNode
  /** The node whose visitors need a hop. */
  readonly other: BenchNode
  readonly close: () => Promise<void>
}

export interface TwoNodesOptions {
  readonly stages: Stages
  readonly database: Database
  readonly nodeOptions: string
}

export async function startTwoNodes({ stages, database, nodeOptions }: TwoNodesOptions): Promise<TwoNodes> {
  const url = await database.create()
  const opened: Stage[] = []
  const close = async (): Promise<void> => {
    for (const stage of opened.toReversed()) await stage.close()
  }
  const shared = stages.open('cluster-key')
  opened.push(shared)
  const start = async (name: string): Promise<BenchNode> => {
    const stage = stages.open(name)
    opened.push(stage)
    const place = { stage, nodeOptions }
    const flags = {
      node: name,
      'database-url': url,
      'key-file': join(shared.folder, 'secret.key'),
      'cluster-listen': `${LOOPBACK}:0`,
      // As behind a load balancer, addresses are the same at both.
      'public-https-port': '443',
      'public-http-port': '80',
    }
    return { ...(await startPosternServer(place, { flags })), place }
  }
  try {
    // In sequence, since the first creates the key and the tables.
    const [own, other] = [await start('own-node'), await start('other-node')]
    for (const { api } of [own, other]) await retry(() => meet(api), { timeoutMs: MEET_MS })
    return { own, other, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function meet(api: PosternServer['api']): Promise<void> {
  const { nodes } = await api.get('/nodes')
  if (nodes.length < 2) throw new Error('the nodes do not know of each other')
}
