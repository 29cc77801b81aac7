/** Three nodes on their own PostgreSQL, with a gate in front of everything that can be cut off. */
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ClusterNode, startCluster, type TestCluster } from '../support/cluster.ts'
import { portsToKeep } from '../support/free-port.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { openGate, type TcpGate } from '../support/tcp-gate.ts'
import type { Owner } from '../support/upstream.ts'
import { childPids } from './children.ts'
import { startWitness, type Witness } from './witness.ts'

/** A node that is stopped, killed and restarted on the same ports. */
export interface RestartedNode {
  readonly number: number
  readonly name: string
  /** The region that the node reports to agents. */
  readonly region: string
  /** The program as last started. */
  readonly running: ClusterNode
  /** The gate in front of its port for other nodes. */
  readonly fromNodes: TcpGate
  /** The gate between it and the database. */
  readonly toDatabase: TcpGate
  /** Whether visitors are sent here, as by a balancer that checks `/readyz`. */
  readonly isOpen: boolean
  /** When it was ready after its last start, in milliseconds since 1970. */
  readonly since: number
  /** The pids of all its processes, the first one first. */
  processes(): number[]
  close(): void
  start(): Promise<void>
}

export interface NodesWorld {
  readonly cluster: TestCluster
  readonly nodes: readonly RestartedNode[]
  readonly postgres: Postgres
  /** Leads past all gates. */
  readonly databaseUrl: string
  readonly witness: Witness
}

export interface NodesWorldOptions {
  readonly workers: number
  readonly drainMs: number
  /** Folder where logs are kept, instead of one that is removed. */
  readonly logs?: string | undefined
}

const COUNT = 3

/** The listeners of a node that keep their ports when it restarts. */
const LISTENERS = ['api', 'metrics', 'agent', 'ssh', 'https', 'http', 'cluster'] as const

export async function startNodesWorld(owner: Owner, options: NodesWorldOptions): Promise<NodesWorld> {
  const { workers, drainMs } = options
  const folder = mkdtempSync(join(tmpdir(), 'chaos-nodes-'))
  owner.after(() => rmSync(folder, { recursive: true, force: true }))
  const logs = options.logs ?? folder
  mkdirSync(logs, { recursive: true })
  // Durable, since acknowledged writes must survive an immediate shutdown.
  const postgres = await startPostgres({ durable: true })
  owner.after(() => postgres.stop())
  const databaseUrl = await postgres.createDatabase()
  const homes = await Promise.all(
    Array.from({ length: COUNT }, (_, i) => homeOf(owner, { databaseUrl, folder, logs }, i + 1)),
  )
  const flags = { workers: String(workers), 'drain-timeout': `${drainMs}ms` }
  const ofNode = (number: number) => {
    const home = homes[number - 1]
    if (!home) throw new Error(`there is no node ${number}`)
    return { databaseUrl: home.databaseUrl, flags: home.flags, env: home.env, files: { err: home.log } }
  }
  const cluster = await startCluster(owner, { databaseUrl, flags, ofNode })
  const nodes = homes.map((home, i) => restarted(cluster, home, i + 1))
  return { cluster, nodes, postgres, databaseUrl, witness: await startWitness(owner) }
}

interface Home {
  readonly databaseUrl: string
  readonly flags: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly log: number
  readonly fromNodes: TcpGate
  readonly toDatabase: TcpGate
}

async function homeOf(
  owner: Owner,
  world: { databaseUrl: string; folder: string; logs: string },
  number: number,
): Promise<Home> {
  const ports = await portsToKeep(LISTENERS.length)
  const listen = Object.fromEntries(LISTENERS.map((name, i) => [`${name}-listen`, `127.0.0.1:${ports[i]}`]))
  const fromNodes = await openGate(ports[LISTENERS.indexOf('cluster')] ?? 0)
  const url = new URL(world.databaseUrl)
  const toDatabase = await openGate(Number(url.port))
  url.port = String(toDatabase.port)
  for (const gate of [fromNodes, toDatabase]) owner.after(() => gate.shut())
  const temporary = join(world.folder, `tmp-${number}`)
  mkdirSync(temporary, { mode: 0o700 })
  const log = openSync(join(world.logs, `node-${number}.log`), 'a')
  owner.after(() => closeSync(log))
  return {
    ...{ databaseUrl: url.href, fromNodes, toDatabase, log },
    flags: { ...listen, 'cluster-address': `127.0.0.1:${fromNodes.port}` },
    env: { TMPDIR: temporary },
  }
}

function restarted(cluster: TestCluster, { fromNodes, toDatabase }: Home, number: number): RestartedNode {
  const first = cluster.nodes[number - 1]
  if (!first) throw new Error(`there is no node ${number}`)
  let running = first
  let isOpen = true
  let since = Date.now()
  return {
    ...{ number, name: first.name, region: `r${number}`, fromNodes, toDatabase },
    get running() {
      return running
    },
    get isOpen() {
      return isOpen
    },
    get since() {
      return since
    },
    processes() {
      const pid = running.server.child.pid ?? 0
      return [pid, ...childPids(pid)]
    },
    close() {
      isOpen = false
    },
    async start() {
      running = await cluster.start(number)
      isOpen = true
      since = Date.now()
    },
  }
}
