/** A data plane stops while others serve: our agents move to another one, and visitors do not notice. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { request } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Connection } from '../../src/agent/library.ts'
import { metric } from '../support/metrics.ts'
import { type Online, online } from '../support/presence.ts'
import { trustedContext } from '../support/trusted-context.ts'
import { until } from '../support/until.ts'
import { httpUpstream, tcpUpstream } from '../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, exchange } from '../support/visitor.ts'
import { echoMessages, WebSocketVisitor } from '../support/websocket.ts'
import { ownAgent, sdkTunnel } from './edges/agents.ts'
import { World } from './edges/world.ts'

/** Requests under way at any time. */
const VISITORS = 4

/** Requests that must be answered after a change before it counts as survived. */
const ENOUGH = 60

let world: World
before(async () => {
  // Longer than any test waits: a connection that is closed only after this time makes a test fail.
  world = await World.start({ planeCount: 2, flags: { 'drain-timeout': '10m' } })
  // The first plane is the only one, so that agents go there.
  await world.platform.planes.end('w2')
})
after(() => world.stop())

/** Answers `begun` at once, and the rest on `finish`. */
class LongAnswers {
  readonly #waiting: ServerResponse[] = []

  begin(response: ServerResponse): void {
    response.write('begun ')
    this.#waiting.push(response)
  }

  finish(): void {
    for (const response of this.#waiting.splice(0)) response.end('and finished')
  }
}

/** Between two visits of the same visitor: short against a move, and visitors do not take all of the CPU meanwhile. */
const BETWEEN_VISITS_MS = 10

/** Visits repeatedly, each time on a new connection. */
class Crowd {
  readonly failed: string[] = []
  served = 0
  #isStopped = false
  readonly #visitors: Promise<void>[]

  constructor(visit: () => Promise<string>) {
    this.#visitors = Array.from({ length: VISITORS }, async () => {
      while (!this.#isStopped) {
        const answer = await visit().catch((error: Error) => error.message)
        if (answer === 'served') this.served++
        else this.failed.push(answer)
        await setTimeout(BETWEEN_VISITS_MS)
      }
    })
  }

  async goOn(): Promise<void> {
    const enough = this.served + ENOUGH
    await until('more visitors are served', () => this.served >= enough || this.failed.length > 0)
  }

  async stop(): Promise<readonly string[]> {
    this.#isStopped = true
    await Promise.all(this.#visitors)
    return this.failed
  }
}

/**
 * A GET on a new connection. A plane that stops listening in this process resets the connections in its queue, unlike
 * the sockets of a supervisor; so the connection is made first, and retried if needed.
 */
async function get(name: string): Promise<string> {
  const { httpsPort: port, ca } = world.platform
  const secureContext = trustedContext(ca)
  for (;;) {
    const socket = connectTls({ host: '127.0.0.1', port, servername: name, secureContext })
    try {
      await once(socket, 'secureConnect')
    } catch {
      continue
    }
    const asked = request({ createConnection: () => socket, host: name, headers: { host: `${name}:${port}` } })
    asked.end()
    const { status, text } = await answerOf(asked)
    return status === 200 ? text : `${status} ${text}`
  }
}

async function echoOverTcp(url: string): Promise<string> {
  for (;;) {
    const socket = await dialTcp(url).catch(() => undefined)
    if (socket) return exchange(socket, 'served')
  }
}

const sorted = ({ sessions, tunnels, endpoints }: Online) =>
  [sessions, tunnels, endpoints].map((each) => each.map(({ id }) => String(id)).sort())

describe('an agent with visitors', () => {
  test('moves with its tunnels, and no request fails', async (t) => {
    const { planes } = world.platform
    const long = new LongAnswers()
    const answer = ({ url }: IncomingMessage, response: ServerResponse) => {
      if (url === '/long') long.begin(response)
      else response.end('served')
    }
    const service = await httpUpstream(t, answer, echoMessages)
    const tcp = await tcpUpstream(t)
    const agent: Connection = await ownAgent(t, world)
    const web = await agent.forward({ addr: service.port })
    const raw = await agent.forward({ addr: tcp.port, proto: 'tcp' })
    await agent.forward({ addr: service.port, labels: { moves: 'yes' } })
    const backend = await world.toBackend('tunnel_group', { labels: { moves: 'yes' } })
    const edge = await world.httpsEdge({ routes: [{ backend }] })
    const before = sorted(await online(world.platform))
    await planes.open('w3')

    const { hostname } = new URL(web.url)
    const crowds = [
      new Crowd(() => get(hostname)),
      new Crowd(() => get(edge.name)),
      new Crowd(() => echoOverTcp(raw.url)),
    ]
    for (const crowd of crowds) await crowd.goOn()
    // Spread over both planes.
    const downloads = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const asked = beginVisit(web.url, world.platform, { path: '/long' })
        const [response] = (await once(asked, 'response')) as [IncomingMessage]
        return response
      }),
    )
    const sockets = await Promise.all(Array.from({ length: 12 }, () => WebSocketVisitor.open(web.url, world.platform)))
    const echo = async () => {
      for (const each of sockets) each.send(Buffer.from('hello'))
      for (const each of sockets) assert.equal((await each.receive()).toString(), 'hello')
    }

    let hasEnded = false
    const ended = planes.end('w1').then(() => {
      hasEnded = true
    })
    await until('the agent is at the other plane', () => world.logged('agent online').length > 1)
    for (const crowd of crowds) await crowd.goOn()
    await echo()
    assert.deepEqual(sorted(await online(world.platform)), before, 'the same session, tunnels and endpoints, once')
    assert.equal(hasEnded, false, 'it waits for its connected visitors')

    long.finish()
    for (const response of downloads) {
      let text = ''
      for await (const chunk of response) text += chunk
      assert.equal(text, 'begun and finished')
    }
    await echo()
    for (const each of sockets) each.close()
    await ended
    for (const crowd of crowds) await crowd.goOn()
    for (const crowd of crowds) assert.deepEqual(await crowd.stop(), [])
    assert.deepEqual(sorted(await online(world.platform)), before)
    const resumed = world.logged('agent online').map(({ isResumed }) => isResumed)
    assert.deepEqual(resumed, [false, true])
    await agent.close()
    await until('nothing is left', async () => {
      const { sessions, tunnels } = await online(world.platform)
      return sessions.length + tunnels.length === 0
    })
  })

  test('that cannot move reconnects when its connection is closed', async (t) => {
    const { planes } = world.platform
    const service = await httpUpstream(t, (_request, response) => void response.end('served'))
    await sdkTunnel(t, world, { labels: { sdk: 'yes' }, to: service.address })
    const backend = await world.toBackend('tunnel_group', { labels: { sdk: 'yes' } })
    const edge = await world.httpsEdge({ routes: [{ backend }] })
    assert.equal(await get(edge.name), 'served')
    await planes.open('w4')
    const crowd = new Crowd(() => get(edge.name))
    await crowd.goOn()
    assert.deepEqual(await crowd.stop(), [])
    // Idle connections to its service, kept for later visitors, do not delay anything.
    await planes.end('w3')
    assert.equal(await get(edge.name), 'served')
  })

  test('and a connection to each plane stays online when either of the planes stops', async (t) => {
    const { planes } = world.platform
    await planes.open('w5')
    const legs = () => world.logged('agent leg online').length
    const before = legs()
    const service = await httpUpstream(t, (_request, response) => void response.end('served'))
    const agent = await ownAgent(t, world)
    const { hostname } = new URL((await agent.forward({ addr: service.port })).url)
    await until('it has a leg', () => legs() > before)
    const crowd = new Crowd(() => get(hostname))
    t.after(() => crowd.stop())
    await crowd.goOn()
    const relayed = () => metric(world.platform.metricsUrl, 'postern_relayed_connections_total')
    // One of them has the session, and the other has the leg.
    for (const [next, former] of [
      ['w6', 'w4'],
      ['w7', 'w5'],
    ] as const) {
      await planes.open(next)
      await planes.end(former)
      await until('requests no longer hop', async () => {
        const count = await relayed()
        await crowd.goOn()
        return (await relayed()) === count
      })
    }
    assert.deepEqual(await crowd.stop(), [])
    await agent.close()
  })
})
