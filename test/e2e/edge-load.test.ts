/** A thousand visitors at once, some of dead, slow or hostile services: no good request is lost. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import { until } from '../support/until.ts'
import { tcpUpstream, type Upstream } from '../support/upstream.ts'
import { ownAgent } from './edges/agents.ts'
import { blackHole, recorder } from './edges/upstreams.ts'
import { type Answer, askHttp1, askHttp2, dialled, type EdgeEntry, http2Over } from './edges/visitor.ts'
import { World } from './edges/world.ts'

/** Connections to each kind of service, one for each visitor. */
const VISITORS = { good: 700, dead: 100, slow: 100, hostile: 100 } as const
type Kind = keyof typeof VISITORS
const kinds = Object.keys(VISITORS) as Kind[]

/** Requests of each visitor of a good service, one after the other. */
const ROUNDS = 3

const SLOW_MS = 1500

/** How many connect at once: the edge allows ten seconds for a handshake, and both ends of it are in this process. */
const ARRIVING = 100

let world: World
let services: Record<Kind, Upstream>
before(async () => {
  world = await World.start({ flags: { 'log-level': 'warn' } })
  services = {
    good: await recorder(world, ({ url }, response) => response.end(`good ${url}`)),
    dead: await blackHole(world),
    slow: await recorder(world, ({ url }, response) => {
      response.write('slow')
      setTimeout(() => response.end(` ${url}`), SLOW_MS)
    }),
    hostile: await tcpUpstream(world, harm),
  }
})
after(() => world.stop())

let harmed = 0
/** Misbehaves in a different way each time. */
function harm(socket: Socket): void {
  const harms: readonly ((socket: Socket) => void)[] = [
    () => socket.destroy(),
    () => socket.resetAndDestroy(),
    () => socket.write(Buffer.alloc(100_000, 0xff)),
    () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort', () => socket.destroy()),
    () => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n'),
    () => socket.write(`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(20_000)}\r\n`),
    () =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'),
    () => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\nraw'),
  ]
  socket.once('data', () => harms[harmed++ % harms.length]?.(socket))
}

for (const way of ['dialled by the server', 'behind one agent']) {
  test(`good requests survive dead, slow and hostile neighbours ${way}`, async (t) => {
    const names: Record<string, string> = {}
    const agent = way === 'behind one agent' ? await ownAgent(t, world) : undefined
    for (const kind of kinds) {
      const labels = { load: kind }
      await agent?.forward({ addr: services[kind].address, labels, inspect: false })
      const backend = agent ? await world.toBackend('tunnel_group', { labels }) : await world.toAddress(services[kind])
      names[kind] = (await world.httpsEdge({ routes: [{ backend }] })).name
    }

    const all: Visitor[][] = []
    t.after(() => {
      for (const visitor of all.flat()) visitor.leave()
    })
    for (const kind of kinds) all.push(await arrive(names[kind] ?? '', VISITORS[kind]))
    const [good = [], dead = [], slow = [], hostile = []] = all
    const times: number[] = []
    /** Good answers up to the first answer to a visitor that waits for a dead service. */
    let meanwhile: number | undefined
    const deadAnswered = Promise.allSettled(
      dead.map((visitor) =>
        visitor.ask('/').finally(() => {
          meanwhile ??= times.length
        }),
      ),
    )
    const hostileAnswered = Promise.allSettled(hostile.map((visitor) => visitor.ask('/')))
    const slowly = Promise.all(slow.map((visitor, i) => visitor.ask(`/${i}`)))
    const started = performance.now()
    await Promise.all(
      good.map(async (visitor, i) => {
        for (let round = 0; round < ROUNDS; round++) {
          const begun = performance.now()
          const { status, text } = await visitor.ask(`/${i}/${round}`)
          assert.deepEqual([status, text], [200, `good /${i}/${round}`])
          times.push(performance.now() - begun)
        }
      }),
    )
    const took = performance.now() - started
    // At least one for each good visitor; more depends on the machine. Held up by the dead, none would be answered.
    assert.ok((meanwhile ?? times.length) >= good.length, `waiting for the dead holds up nobody: ${meanwhile}`)
    for (const [i, { status, text }] of (await slowly).entries()) assert.deepEqual([status, text], [200, `slow /${i}`])
    // Behind an agent, the agent limits the wait for the dead.
    const ofDead = agent ? [] : await deadAnswered
    for (const outcome of ofDead) {
      assert.ok(outcome.status === 'fulfilled', 'visitors of the dead get an answer')
      assert.deepEqual([outcome.value.status, outcome.value.code], [504, 'ERR_UPSTREAM_TIMEOUT'])
    }
    for (const outcome of await hostileAnswered) {
      const isSafe = outcome.status === 'rejected' || outcome.value.status === 502 || outcome.value.body.length === 0
      assert.ok(isSafe, 'no part of a hostile answer is taken for another answer')
    }
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor(times.length * share)]?.toFixed(0)
    t.diagnostic(`${times.length} good requests in ${took.toFixed(0)} ms: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
    for (const visitor of all.flat()) visitor.leave()

    // Afterwards, all is as before.
    const again = await arrive(names.good ?? '', 1)
    assert.equal((await again[0]?.ask('/after'))?.text, 'good /after')
    again[0]?.leave()
    await until('nothing is left open', async () => (await openConnections()) === 0)
  })
}

interface Visitor {
  ask(path: string): Promise<Answer>
  leave(): void
}

/** Opens `count` visitors with a connection each, every fourth over HTTP/2. */
async function arrive(name: string, count: number): Promise<Visitor[]> {
  const listener: EdgeEntry = { name, port: world.platform.httpsPort, ca: world.platform.ca }
  const first = await dialled(listener)
  const [session] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  const tls: ConnectionOptions = { session }
  const visit = async (i: number): Promise<Visitor> => {
    if (i % 4 === 3) {
      const session = http2Over(await dialled(listener, { version: '2', tls }), listener)
      return { ask: (path) => askHttp2(session, listener, { path }), leave: () => session.destroy() }
    }
    const socket = await dialled(listener, { tls })
    return { ask: (path) => askHttp1(socket, listener, { path }), leave: () => void socket.destroy() }
  }
  const visitors: Visitor[] = []
  while (visitors.length < count) {
    const next = Math.min(ARRIVING, count - visitors.length)
    visitors.push(...(await Promise.all(Array.from({ length: next }, (_, i) => visit(visitors.length + i)))))
  }
  return visitors
}

async function openConnections(): Promise<number> {
  const metrics = await (await fetch(world.platform.metricsUrl)).text()
  const open = metrics.matchAll(/^postern_edge_connections_open\{.*\} (\d+)$/gm)
  return [...open].reduce((sum, [, count]) => sum + Number(count), 0)
}
