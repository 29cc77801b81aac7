/**
 * `npm run container-cluster`: builds the image, starts deploy/cluster as docs/cluster.md says, and checks that every
 * node serves every address, and that nodes can be stopped, killed and replaced during visits to an agent.
 *
 * Needs what `npm run container` does, and takes the same flags.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import { blocksOf, readPage } from '../docs/page.ts'
import type { Json } from '../support/api-client.ts'
import { until } from '../support/until.ts'
import { buildImage, mayOpen, must, run, startAgent, step, visit } from './containers.ts'

/** The API of all nodes, through the balancer. */
const API = 'http://127.0.0.1:7400'

const NODES = ['node-1', 'node-2', 'node-3']

/** The answer of the agent's service. */
const HELLO = 'hello'

const scratch = mkdtempSync(join(tmpdir(), 'postern-container-cluster-'))
const cluster = join(scratch, 'deploy/cluster')
const agent = join(scratch, 'postern-check-agent')
cpSync(fileURLToPath(new URL('../../deploy/cluster', import.meta.url)), cluster, { recursive: true })
mkdirSync(agent)
try {
  await check()
  console.log('# the cluster of containers does what docs/cluster.md says')
} finally {
  for (const folder of [agent, cluster]) run('docker compose down --volumes --timeout 1', folder)
  rmSync(scratch, { recursive: true })
}

async function check(): Promise<void> {
  step('the image is built')
  buildImage()

  step('three nodes, the database and the balancer start')
  allowFewerFiles()
  const [start] = blocksOf('docs/cluster.md').filter(({ text }) => text.startsWith('cd deploy/cluster\n'))
  const log = must(start?.text ?? '', scratch)
  const secretOf = (what: RegExp): string => {
    const [found, ...others] = [...log.matchAll(what)].map(([, secret]) => secret)
    assert.ok(found !== undefined && others.length === 0, `${what.source} must be shown once`)
    return found
  }
  const authtoken = secretOf(/Agent authtoken +(\S+)/g)
  const key = secretOf(/Admin API key +(\S+)/g)
  const names = async () => (await ask(key, '/nodes'))?.nodes.map(({ name }: Json) => name).toSorted()
  await until('the nodes know each other', async () => String(await names()) === String(NODES))

  step('an agent is reached through the balancer, and its visitors by their own address')
  const caFile = join(scratch, 'ca.pem')
  must(`docker compose cp node-1:/data/ca.pem ${caFile}`, cluster)
  const ca = readFileSync(caFile)
  const url = await startAgent(agent, { authtoken, caFile })
  const isServed = async (): Promise<boolean> => (await visit(url, ca)) === HELLO
  await until('visitors reach it', isServed)
  // Nodes without connections are chosen in turn, so each of them is visited.
  for (let i = 0; i < 2 * NODES.length; i++) assert.ok(await isServed(), 'all nodes serve it')
  const exchanges: Json[] = (await ask(key, '/exchanges'))?.exchanges ?? []
  const ips = new Set(exchanges.map(({ client_ip: ip }) => ip))
  assert.ok(exchanges.length >= 2 * NODES.length, 'the visits are listed')
  assert.equal(ips.has(balancerIp()), false, 'a visitor must not have the address of the balancer')

  const visits = keepVisiting(() => visit(url, ca))
  try {
    for (const node of NODES) {
      step(`${node} stops cleanly and is replaced, and no visit fails`)
      const id = must(`docker compose ps --quiet ${node}`, cluster).trim()
      await whileVisited(visits, `docker compose stop ${node}`)
      assert.equal(must(`docker inspect --format '{{.State.ExitCode}}' ${id}`), '0\n', `${node} was killed`)
      must(`docker compose rm --force ${node}`, cluster)
      await whileVisited(visits, replaceCommand(node))
    }
  } finally {
    await visits.stop()
  }

  step('two nodes are killed, and then the third: the agent is reached through the remaining nodes')
  const [first = '', ...others] = NODES
  for (const killed of [others, [first]]) {
    for (const node of killed) must(`docker compose kill ${node}`, cluster)
    await until('it is reached again', isServed)
    for (const node of killed) must(replaceCommand(node), cluster)
    await until('the nodes know each other again', async () => String(await names()) === String(NODES))
  }
}

/** The command of docs/cluster.md that replaces the container of a node, for this node. */
function replaceCommand(node: string): string {
  const [, command = ''] = /`(docker compose up [^`]*) node-1`/.exec(readPage('docs/cluster.md')) ?? []
  return `${command} ${node}`
}

interface Visits {
  /** The number of visits, and what the failed ones got. */
  readonly made: number
  readonly failed: readonly string[]
  stop(): Promise<void>
}

/** Visits one after the other, until it is stopped. */
function keepVisiting(visitOnce: () => Promise<string>): Visits {
  let isStopped = false
  let made = 0
  const failed: string[] = []
  const done = (async () => {
    for (; !isStopped; made++) {
      const got = await visitOnce()
      if (got !== HELLO) failed.push(`${new Date().toISOString()} ${got}`)
    }
  })()
  return {
    failed,
    get made() {
      return made
    },
    stop() {
      isStopped = true
      return done
    },
  }
}

/** Runs a Compose command during the visits, none of which may fail. */
async function whileVisited(visits: Visits, command: string): Promise<void> {
  const before = visits.made
  await promisify(execFile)('sh', ['-euc', command], { cwd: cluster })
  assert.ok(visits.made > before, 'there were no visits meanwhile')
  assert.deepEqual(visits.failed, [])
}

function balancerIp(): string {
  return composeFile().services.balancer.networks.inside.ipv4_address
}

function composeFile(): Json {
  return parse(readFileSync(join(cluster, 'compose.yml'), 'utf8'))
}

function allowFewerFiles(): void {
  const { services } = composeFile()
  if (mayOpen(services.balancer.ulimits.nofile)) return
  const fewer = [...NODES, 'balancer'].map((name) => [name, { ulimits: { nofile: 10_000 } }])
  writeFileSync(join(cluster, 'compose.override.yml'), stringify({ services: Object.fromEntries(fewer) }))
}

/** Undefined while nothing answers. */
async function ask(key: string, path: string): Promise<Json> {
  const headers = { Authorization: `Bearer ${key}`, 'Service-Version': '2' }
  const response = await fetch(API + path, { headers }).catch(() => undefined)
  return response?.ok ? ((await response.json()) as Json) : undefined
}
