/** An agent that knows of several nodes of its server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { streamTypes } from '../link/wire/stream-types.ts'
import { dialServer } from './connect.ts'
import { readAll, testAgent, testPlan, until } from './testing/test-agent.ts'
import { TestServer } from './testing/test-server.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

async function testServer(nodeId: string, nodeAddresses: readonly string[] = []): Promise<TestServer> {
  const made = await TestServer.start(identity)
  made.rules.node = { nodeId, nodeAddresses }
  closing.push(() => made.close())
  return made
}

const at = ({ port }: TestServer): string => `127.0.0.1:${port}`

/** An agent that is online at a node. */
async function onlineAt(first: TestServer) {
  const made = testAgent({ server: { host: '127.0.0.1', port: first.port }, ca: identity.ca })
  closing.push(() => made.agent.close())
  await made.agent.start()
  const web = await made.agent.open(testPlan())
  return { ...made, web, session: first.latest }
}

test('an agent moves to another node when its own stops, and releases its binds at the old node', async () => {
  const second = await testServer('nd_2')
  const first = await testServer('nd_1')
  const { web, session, nextEvent, events } = await onlineAt(first)
  assert.equal(session.auth.knowsNodes, true)
  second.knows(first)
  first.move(session, ['127.0.0.1:1', at(second)])
  await nextEvent('moved')
  const moved = await second.session(1)
  assert.deepEqual([moved.auth.clientId, moved.auth.isMoving], ['ts_1', true])
  assert.equal(await session.closed, undefined)
  assert.deepEqual(
    moved.binds.map(({ id }) => id),
    session.unbound,
  )
  assert.equal(await readAll(second.visit(web.id)), 'served')
  assert.ok(!events.some(({ type }) => type === 'offline'))
})

test('an address that does not respond does not prevent a move elsewhere', async () => {
  const second = await testServer('nd_2')
  const first = await testServer('nd_1')
  const silent = 1
  const tried = Promise.withResolvers<void>()
  const made = testAgent({
    server: { host: '127.0.0.1', port: first.port },
    ca: identity.ca,
    dial: (to) => {
      if (to.server.port !== silent) return dialServer(to)
      tried.resolve()
      return new Promise(() => {})
    },
  })
  closing.push(() => made.agent.close())
  await made.agent.start()
  await made.agent.open(testPlan())
  second.knows(first)
  first.move(first.latest, [`127.0.0.1:${silent}`, at(second)])
  await tried.promise
  assert.equal(second.sessions.length, 0)
  made.timers.pass(500)
  await made.nextEvent('moved')
  assert.deepEqual([first.sessions.length, second.sessions.length], [1, 1])
})

test('one that is asked to move within its node stays at that node', async () => {
  const second = await testServer('nd_2')
  const first = await testServer('nd_1', [at(second)])
  const { session, nextEvent } = await onlineAt(first)
  first.move()
  await nextEvent('moved')
  assert.equal(await session.closed, undefined)
  assert.deepEqual([first.sessions.length, second.sessions.length], [2, 0])
  assert.deepEqual(session.unbound, [])
})

test('an agent whose node is gone comes back at another one, which was announced later', async () => {
  const second = await testServer('nd_2')
  const first = await testServer('nd_1')
  const { web, timers, nextEvent } = await onlineAt(first)
  first.tellNodes(['not an address', at(second)])
  second.knows(first)
  // Messages are handled in order, so the list of nodes has arrived by now.
  await first.command(streamTypes.restart)
  await first.close()
  const { fault } = await nextEvent('offline')
  assert.equal(fault.code, 'lost')
  await until(() => timers.waiting > 0)
  timers.pass(30_000)
  await nextEvent('online')
  assert.equal((await second.session(1)).auth.isMoving, false)
  await until(() => web.isOnline)
  assert.equal(await readAll(second.visit(web.id)), 'served')
})

test('the session at a node that stops lasts as long as visitors of its further connections', async () => {
  const second = await testServer('nd_2')
  const first = await testServer('nd_1')
  first.rules.plane = ({ leg }) => ({ planeId: leg > 0 ? 'w2' : 'w1', planeCount: 2 })
  const made = testAgent({ server: { host: '127.0.0.1', port: first.port }, ca: identity.ca })
  closing.push(() => made.agent.close())
  await made.agent.start()
  const target = { accept: (connection: NodeJS.ReadWriteStream) => void connection.pipe(connection) }
  const echo = await made.agent.open(testPlan({ target }))
  const session = first.latest
  await until(() => made.timers.waiting > 0)
  made.timers.pass(500)
  const leg = await first.session(2)
  const visitor = first.visit(echo.id, {}, leg)
  visitor.write('before')
  assert.equal(String((await once(visitor, 'data'))[0]), 'before')
  second.knows(first)
  first.move(session, [at(second)])
  first.move(leg)
  await made.nextEvent('moved')
  await until(() => session.unbound.length === 1)
  // More than the session would need to end.
  for (let times = 0; times < 20; times++) {
    visitor.write('after')
    assert.equal(String((await once(visitor, 'data'))[0]), 'after')
  }
  assert.deepEqual([session.mux.isClosed, leg.mux.isClosed], [false, false])
  visitor.end()
  assert.deepEqual(await Promise.all([leg.closed, session.closed]), [undefined, undefined])
})
