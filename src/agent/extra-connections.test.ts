import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { errorText } from '../link/wire/messages/error-text.ts'
import type { ForwardTarget } from './forward.ts'
import { type Connections, parseConnections } from './session-connections.ts'
import { readAll, testAgent, testPlan, until } from './testing/test-agent.ts'
import { TestServer, type TestServerSession } from './testing/test-server.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

const held = errorText('This data plane has a connection of the session already.', 'ERR_NGROK_108')

/** A server with so many planes; connections land at them in the order that `lands` gives, and then in turn. */
async function start({
  planeCount = 2,
  connections = 'auto',
  lands = [],
  target = testPlan().target,
}: {
  planeCount?: number
  connections?: Connections
  lands?: number[]
  target?: ForwardTarget
} = {}) {
  let landed = 0
  const at = { planeId: '' }
  /** How many were refused. */
  const refused = { count: 0 }
  const testServer = await TestServer.start({
    ...identity,
    rules: {
      auth: ({ heldPlanes }) => {
        at.planeId = `w${(lands.shift() ?? landed++) % planeCount}`
        if (!heldPlanes?.includes(at.planeId)) return ''
        refused.count++
        return held
      },
      plane: () => ({ planeId: at.planeId, planeCount }),
    },
  })
  const server = { host: '127.0.0.1', port: testServer.port }
  const made = testAgent({ server, ca: identity.ca, connections })
  closing.push(
    () => testServer.close(),
    () => made.agent.close(),
  )
  await made.agent.start()
  return { ...made, testServer, refused, open: () => made.agent.open(testPlan({ target })) }
}

const legsOf = (testServer: TestServer): TestServerSession[] =>
  testServer.sessions.filter(({ auth }) => auth.heldPlanes !== undefined)
const isOpen = ({ mux }: TestServerSession): boolean => !mux.isClosed

describe('further connections', () => {
  test('are opened once a tunnel is online, one to each plane, as the same session', async () => {
    const { testServer, timers, open } = await start({ planeCount: 3, lands: [0, 0, 1, 1, 2] })
    const [first] = testServer.sessions
    timers.pass(60_000)
    assert.equal(testServer.sessions.length, 1)
    const tunnel = await open()
    assert.equal(testServer.sessions.length, 1, 'not at once')
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 2)
    const nextEvent = legsOf(testServer).map(({ auth }) => [
      auth.clientId,
      auth.cookie.reveal(),
      auth.leg,
      auth.heldPlanes,
    ])
    assert.deepEqual(nextEvent, [
      ['ts_1', 'cookie_1', 1, ['w0']],
      ['ts_1', 'cookie_1', 2, ['w0', 'w1']],
    ])
    for (const session of [first, ...legsOf(testServer)]) {
      assert.equal(await readAll(testServer.visit(tunnel.tunnelId, {}, session)), 'served')
    }
    timers.pass(3_600_000)
    assert.equal(testServer.sessions.length, 3, 'that is all')
  })

  for (const [name, given, count] of [
    ['none with a server of one plane', { planeCount: 1 }, 0],
    ['none when one connection is enough', { planeCount: 4, connections: 1 }, 0],
    ['as many as are wanted', { planeCount: 4, connections: 3 }, 2],
    ['no more than there are planes', { planeCount: 2, connections: 16 }, 1],
    ['at most 15 of them', { planeCount: 40 }, 15],
  ] as const) {
    test(`are ${name}`, async () => {
      const { testServer, timers, open } = await start(given)
      await open()
      timers.pass(1000)
      await until(() => legsOf(testServer).length === count)
      timers.pass(3_600_000)
      await new Promise((resolve) => setTimeout(resolve, 20))
      assert.equal(legsOf(testServer).length, count)
    })
  }

  test('that land at a plane that has one already are retried a few times, then with growing pauses', async () => {
    const { testServer, timers, open, refused } = await start({ lands: Array(13).fill(0) })
    await open()
    const waits: number[] = []
    for (const count of [6, 12]) {
      const before = timers.now()
      await until(() => {
        if (refused.count === count - 6) timers.pass(25)
        return refused.count > count - 6
      })
      waits.push(timers.now() - before)
      await until(() => refused.count === count)
      await new Promise((resolve) => setTimeout(resolve, 20))
      assert.equal(refused.count, count, 'a few times')
    }
    const [first = 0, second = 0] = waits
    assert.ok(second > first, `${first} and then ${second}`)
    await until(() => {
      timers.pass(100)
      return legsOf(testServer).length === 1
    })
  })

  test('that die are opened again, and visitors are served meanwhile', async () => {
    const { testServer, timers, open } = await start({ lands: [0, 1, 1] })
    const tunnel = await open()
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 1)
    const [main, leg] = testServer.sessions
    timers.pass(20_000)
    leg?.socket.destroy()
    await leg?.closed
    assert.equal(await readAll(testServer.visit(tunnel.id, {}, main)), 'served')
    await until(() => {
      timers.pass(1000)
      return legsOf(testServer).length === 2
    })
    assert.equal(await readAll(testServer.visit(tunnel.tunnelId)), 'served')
  })

  test('end with the session, and come back with it', async () => {
    const { agent, testServer, timers, open, nextEvent } = await start({ lands: [0, 1, 1, 0] })
    await open()
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 1)
    const [main, leg] = testServer.sessions
    main?.socket.destroy()
    await nextEvent('offline')
    await leg?.closed
    timers.pass(10_000)
    await until(() => testServer.sessions.length === 3 && [...agent.tunnels].every(({ isOnline }) => isOnline))
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 2)
    assert.deepEqual(testServer.sessions[3]?.auth.heldPlanes, ['w1'])
    await agent.close()
    assert.equal(testServer.connections, 0)
  })

  test('that are asked to move keep their visitors, and another one is opened', async () => {
    const { testServer, timers, open } = await start({
      lands: [0, 1, 1],
      target: { accept: (connection) => void connection.pipe(connection) },
    })
    const echo = await open()
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 1)
    const [, leg] = testServer.sessions
    assert.ok(leg)
    const visitor = testServer.visit(echo.tunnelId, {}, leg)
    visitor.write('before')
    assert.equal(String((await once(visitor, 'data'))[0]), 'before')
    testServer.move(leg)
    await until(() => {
      timers.pass(1000)
      return legsOf(testServer).length === 2
    })
    visitor.write('after')
    assert.equal(String((await once(visitor, 'data'))[0]), 'after')
    assert.ok(isOpen(leg))
    visitor.end()
    await leg.closed
    assert.ok(legsOf(testServer).slice(1).every(isOpen))
  })

  test('at the plane that the session has moved to are closed, and one is opened elsewhere', async () => {
    const { testServer, timers, open, nextEvent } = await start({ lands: [0, 1, 1, 0] })
    await open()
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 1)
    const [main, leg] = testServer.sessions
    testServer.move(main)
    await nextEvent('moved')
    await main?.closed
    await leg?.closed
    await until(() => {
      timers.pass(1000)
      return legsOf(testServer).length === 2
    })
    assert.deepEqual(legsOf(testServer)[1]?.auth.heldPlanes, ['w1'])
  })

  test('bring visitors of a tunnel whose bind is not answered yet', async () => {
    const { agent, testServer, timers, open } = await start()
    await open()
    timers.pass(1000)
    await until(() => legsOf(testServer).length === 1)
    const [main, leg] = testServer.sessions
    assert.ok(main && leg)
    testServer.rules.isSlow = true
    const second = agent.open(testPlan())
    await until(() => main.binds.length === 2)
    const early = readAll(testServer.visit('tn_early', {}, leg))
    // Its answer comes after the visitor.
    testServer.visit('tn_early', {}, leg).destroy()
    testServer.answerBinds('tn_early')
    await second
    assert.equal(await early, 'served')
  })
})

test('the number of connections is `auto` or from 1 to 16', () => {
  for (const [text, value] of [
    ['auto', 'auto'],
    ['1', 1],
    ['16', 16],
  ] as const) {
    assert.equal(parseConnections(text), value)
  }
  for (const text of ['', '0', '17', '1.5', '-1', 'many', '0x2', '100']) {
    assert.throws(() => parseConnections(text), /must be `auto` or a number from 1 to 16/)
  }
})
