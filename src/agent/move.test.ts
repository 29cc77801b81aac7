import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { streamTypes } from '../link/wire/stream-types.ts'
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

/** An agent that is online with two tunnels: a web one and one with labels. */
async function online() {
  const testServer = await TestServer.start(identity)
  const made = testAgent({ server: { host: '127.0.0.1', port: testServer.port }, ca: identity.ca })
  closing.push(
    () => testServer.close(),
    () => made.agent.close(),
  )
  await made.agent.start()
  const web = await made.agent.open(testPlan())
  const labelled = await made.agent.open(testPlan({ name: 'labelled', asks: { labels: { app: 'x' } } }))
  return { ...made, testServer, web, labelled, first: testServer.latest }
}

test('an agent that is told to move binds everything at another connection, and leaves the first', async () => {
  const { agent, testServer, web, first, nextEvent, events } = await online()
  const { id, url } = web
  assert.equal(first.auth.canMove, true)
  assert.equal(first.auth.isMoving, false)
  testServer.move()
  assert.equal((await nextEvent('moved')).session, 'ts_1')
  const second = await testServer.session(2)
  assert.deepEqual(
    [second.auth.clientId, second.auth.cookie.reveal(), second.auth.isMoving],
    ['ts_1', 'cookie_1', true],
  )
  assert.equal(await first.closed, undefined)
  assert.deepEqual(
    second.binds.map((bind) => [bind.id, bind.token.reveal()]),
    [[id, `token_of_${id}`]],
  )
  assert.equal(second.labels[0]?.labels.app, 'x')
  assert.deepEqual([web.url, web.isOnline, agent.isOnline], [url, true, true])
  assert.equal(await readAll(testServer.visit(id)), 'served')
  assert.ok(!events.some(({ type }) => type === 'offline'))
  assert.deepEqual(first.unbound, [])
})

test('visitors of the first connection stay until they are done', async () => {
  const testServer = await TestServer.start(identity)
  const { agent, nextEvent } = testAgent({ server: { host: '127.0.0.1', port: testServer.port }, ca: identity.ca })
  closing.push(
    () => testServer.close(),
    () => agent.close(),
  )
  await agent.start()
  const echo = await agent.open(testPlan({ target: { accept: (connection) => void connection.pipe(connection) } }))
  const first = testServer.latest
  const visitor = testServer.visit(echo.id)
  visitor.write('before')
  assert.equal(String((await once(visitor, 'data'))[0]), 'before')
  testServer.move()
  await nextEvent('moved')
  const second = await testServer.session(2)
  await until(() => second.binds.length === 1 && echo.isOnline)
  const later = testServer.visit(echo.id, {}, second)
  later.end('later')
  assert.equal(await readAll(later), 'later')
  visitor.write('after')
  assert.equal(String((await once(visitor, 'data'))[0]), 'after')
  assert.equal(first.mux.isClosed, false)
  visitor.end()
  assert.equal(await first.closed, undefined)
})

test('moves may follow one another', async () => {
  const { testServer, web, first, nextEvent } = await online()
  const sessions = [first]
  for (let count = 2; count <= 5; count++) {
    testServer.move()
    // Asking twice has the same effect as asking once.
    testServer.move()
    await nextEvent('moved')
    sessions.push(await testServer.session(count))
  }
  for (const session of sessions.slice(0, -1)) assert.equal(await session.closed, undefined)
  await until(() => testServer.connections === 1)
  assert.equal(await readAll(testServer.visit(web.id)), 'served')
})

test('an agent that gets no other connection stays, and tries again', async () => {
  const { testServer, web, first, timers, nextEvent, events } = await online()
  const refusals: boolean[] = []
  testServer.rules.auth = ({ isMoving }) => {
    refusals.push(isMoving)
    return 'Shutting down.\n\nERR_NGROK_803\n'
  }
  testServer.move()
  await until(() => refusals.length === 1 && testServer.connections === 1)
  assert.equal(await readAll(testServer.visit(web.id, {}, first).end()), 'served')
  await until(() => timers.waiting === 2)
  timers.pass(1000)
  await until(() => refusals.length === 2 && testServer.connections === 1)
  delete testServer.rules.auth
  await until(() => timers.waiting === 2)
  timers.pass(1000)
  await nextEvent('moved')
  assert.equal(await first.closed, undefined)
  assert.deepEqual(refusals, [true, true])
  assert.ok(!events.some(({ type }) => type === 'offline'))
})

test('an agent whose connection ends before it got another reconnects as usual', async () => {
  const { testServer, web, first, timers, nextEvent } = await online()
  testServer.rules.auth = () => 'Shutting down.\n\nERR_NGROK_803\n'
  testServer.move()
  await until(() => timers.waiting === 2)
  first.socket.destroy()
  const { retryMs } = await nextEvent('offline')
  delete testServer.rules.auth
  timers.pass(retryMs)
  assert.equal((await nextEvent('online')).isResumed, true)
  assert.equal(testServer.latest.auth.isMoving, false)
  await until(() => web.isOnline)
})

test('an agent whose connection ends while it gets another continues there', async () => {
  const { testServer, web, first, nextEvent, events } = await online()
  testServer.rules.auth = () => {
    first.socket.destroy()
    return ''
  }
  testServer.move()
  await nextEvent('moved')
  await until(() => testServer.latest.binds.length === 1 && web.isOnline)
  assert.equal(await readAll(testServer.visit(web.id)), 'served')
  assert.ok(!events.some(({ type }) => type === 'offline'))
})

test('a new connection that is itself asked to move is left too', async () => {
  const { testServer, web, nextEvent, events } = await online()
  testServer.rules.onSession = (session) => {
    if (testServer.sessions.length < 4) testServer.move(session)
  }
  testServer.move()
  await nextEvent('moved')
  await nextEvent('moved')
  await nextEvent('moved')
  await until(() => testServer.connections === 1)
  assert.equal(testServer.sessions.length, 4)
  assert.equal(await readAll(testServer.visit(web.id)), 'served')
  assert.ok(!events.some(({ type }) => type === 'offline'))
})

test('the first connection stays until binds refused at the new one succeed', async () => {
  const { testServer, web, first, nextEvent, timers } = await online()
  testServer.rules.bind = () => 'Not now.\n\nERR_NGROK_334\n'
  testServer.move()
  await nextEvent('tunnel-refused')
  await until(() => timers.waiting === 3)
  assert.equal(first.mux.isClosed, false)
  delete testServer.rules.bind
  timers.pass(1000)
  await until(() => web.isOnline)
  timers.pass(1000)
  assert.equal(await first.closed, undefined)
})

test('a connection at which the server starts another session is closed', async () => {
  const { agent, testServer, web, first } = await online()
  testServer.forgetSessions()
  testServer.move()
  const second = await testServer.session(2)
  assert.equal(await second.closed, undefined)
  assert.equal(second.binds.length, 0)
  assert.equal(await readAll(testServer.visit(web.id, {}, first)), 'served')
  assert.ok(agent.isOnline)
})

test('tunnels opened and closed during a move are opened and closed at the new connection', async () => {
  const { agent, testServer, first, labelled, nextEvent } = await online()
  testServer.rules.isSlow = true
  const opening = agent.open(testPlan({ name: 'late' }))
  await until(() => first.binds.length === 2)
  testServer.rules.isSlow = false
  testServer.move()
  await nextEvent('moved')
  const second = await testServer.session(2)
  await agent.closeTunnel(labelled)
  // The first connection ends without an answer.
  first.socket.destroy()
  const late = await opening
  assert.ok(second.binds.length === 2 && late.isOnline)
  assert.equal(await readAll(testServer.visit(late.id)), 'served')
})

test('the first connection can no longer stop tunnels, and the new one takes commands', async () => {
  const { agent, testServer, web, first, nextEvent } = await online()
  const visitor = testServer.visit(web.id)
  visitor.resume()
  testServer.rules.isSlow = true
  testServer.move()
  await nextEvent('moved')
  testServer.stopTunnel(web.id, 'over', first)
  assert.match(String(await testServer.command(streamTypes.restart)), /takes no commands/)
  assert.ok(agent.tunnels.has(web))
  testServer.stopTunnel(web.id, 'over')
  await nextEvent('tunnel-stopped')
  assert.ok(!agent.tunnels.has(web))
})

test('an agent that is closed while it moves leaves nothing behind', async () => {
  const { agent, testServer, nextEvent, timers } = await online()
  testServer.rules.isSlow = true
  testServer.move()
  await nextEvent('moved')
  await agent.close()
  await until(() => testServer.connections === 0)
  assert.equal(timers.waiting, 0)
})
