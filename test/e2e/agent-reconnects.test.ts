/** An agent that reconnects many times has the same session and addresses each time, and nothing leaks. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { noCommands } from '../../src/agent/agent-commands.ts'
import { authRequest } from '../../src/agent/auth-request.ts'
import { Session } from '../../src/agent/session.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import type { BindAnswer, BindMessage } from '../../src/link/wire/messages/bind.ts'
import { tcpRange } from '../support/free-port.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { assertNobodyOnline, gauges, online, sessionsOnline } from '../support/presence.ts'
import { testPlanes } from '../support/test-workers.ts'
import { until } from '../support/until.ts'
import { dialTcp, exchange } from '../support/visitor.ts'

/** Fewer in the second run, with two workers: it covers connections that move between workers, as all others do. */
const RECONNECTS = testPlanes > 1 ? 300 : 1000

let platform: Platform
let secureContext: SecureContext
before(async () => {
  // A range of its own: a port is free for a moment between two connections, and parallel suites look for free ports.
  const range = await tcpRange(100)
  platform = await startPlatform({ flags: { 'drain-timeout': '1s', 'log-level': 'warn', ...range.flags } })
  secureContext = createSecureContext({ ca: platform.ca })
})
after(() => platform.stop())

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

interface Former {
  readonly session: Session
  readonly binds: readonly BindAnswer[]
}

/** One connection: authenticates, and asks for what the former one had. */
async function connectAgain(former: Former | undefined): Promise<Former & { readonly socket: TLSSocket }> {
  const socket = connectTls({ port: portOf(platform.agents), host: '127.0.0.1', secureContext })
  await once(socket, 'secureConnect')
  const commands = noCommands('none')
  const introduction = { authtoken: new Secret(platform.authtoken), version: '1.0.0' }
  const { clientId = '', cookie = new Secret('') } = former?.session.welcome ?? {}
  const session = await Session.start({
    ...{ socket, commands },
    server: { host: '127.0.0.1', port: portOf(platform.agents) },
    auth: authRequest(introduction, { clientId, cookie, commands, isMoving: false, notAt: '' }),
    onVisitor({ stream }) {
      stream.attach({
        data: (chunk) => void stream.write(chunk),
        end: () => stream.end(),
        drain() {},
        closed() {},
      })
    },
    onStopTunnel: ({ message }) => assert.fail(message),
    onMove() {},
    onNodes() {},
  })
  const [https, tcp] = former?.binds ?? []
  const binds = [await session.bind(bindOf('https', https)), await session.bind(bindOf('tcp', tcp))]
  await session.label({ labels: { app: 'again' }, forwardsTo: '', forwardsProto: '', metadata: '' })
  return { session, binds, socket }
}

function bindOf(proto: string, got: BindAnswer | undefined): BindMessage {
  return {
    ...{ id: '', proto, forwardsTo: '', forwardsProto: '', opts: {}, token: new Secret(''), metadata: '' },
    ...{ bindings: [], poolingEnabled: false, name: '', description: '' },
    ...(got && { id: got.id, opts: got.opts, token: got.token }),
  }
}

test(`${RECONNECTS} reconnects, after connections that ended in different ways`, async () => {
  let agent = await connectAgain(undefined)
  const before = await online(platform)
  const [https, tcp] = agent.binds
  const left: TLSSocket[] = []
  for (let i = 0; i < RECONNECTS; i++) {
    const { socket } = agent
    // The old connection is cut off, ended properly, or still open when the agent reconnects.
    if (i % 3 === 0) socket.destroy()
    else if (i % 3 === 1) await agent.session.close()
    agent = await connectAgain(agent)
    left.push(socket)
  }
  assert.deepEqual(
    agent.binds.map(({ url }) => url),
    [https?.url, tcp?.url],
  )
  await until('the former connections are closed', () => left.every(({ destroyed }) => destroyed))
  const now = await online(platform)
  assert.deepEqual(now.sessions, before.sessions)
  assert.deepEqual(now.tunnels, before.tunnels)
  assert.deepEqual(
    now.endpoints.map(({ id, public_url }) => [id, public_url]),
    before.endpoints.map(({ id, public_url }) => [id, public_url]),
  )
  const { sessions, tunnels, streams, edges } = await gauges(platform)
  assert.deepEqual({ sessions, tunnels, streams, edges }, { sessions: 1, tunnels: 3, streams: 0, edges: 2 })
  assert.equal(await exchange(await dialTcp(tcp?.url ?? ''), 'still here'), 'still here')

  await agent.session.close()
  await sessionsOnline(platform, 0)
  await assertNobodyOnline(platform)
  await assert.rejects(once(connect(portOf(tcp?.url ?? ''), '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })

  // The name is free for another agent.
  const other = await connectAgain(undefined)
  const { hostname } = new URL(https?.url ?? '')
  const bound = await other.session.bind({ ...bindOf('https', undefined), opts: { Domain: hostname } })
  assert.equal(bound.url, https?.url)
  await other.session.close()
  await sessionsOnline(platform, 0)
})
