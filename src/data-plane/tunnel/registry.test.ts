import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { DialFault } from '../../model/dial.ts'
import { ok, TestAgentListener, until } from './testing/test-agent-listener.ts'
import { listed } from './testing/test-control.ts'

const identity = await makeIdentity()

async function startTestListener(): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity).listen()
  after(() => listener.close())
  return listener
}

const visit = { ip: '192.0.2.1', port: 1, proto: 'https', edge: 'none', passthroughTls: false } as const

test('lists are newest first, page by page, and sessions that return keep their position', async () => {
  const listener = await startTestListener()
  const { registry } = listener.tunnels
  const agents = []
  for (let i = 0; i < 5; i++) agents.push(await listener.online())
  const ids = agents.map(({ auth }) => auth.clientId).reverse()
  const sessionIds = async () => (await listed(registry).sessions({ limit: 100 })).map(({ id }) => id)
  assert.deepEqual(await sessionIds(), ids)
  const pages: string[][] = []
  for (let beforeId: string | undefined; ; ) {
    const page = await listed(registry).sessions({ limit: 2, ...(beforeId !== undefined && { beforeId }) })
    if (page.length === 0) break
    pages.push(page.map(({ id }) => id))
    beforeId = page.at(-1)?.id
  }
  assert.deepEqual(pages, [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])

  const third = agents[2] ?? assert.fail()
  await third.agent.leave()
  await until(() => listener.load.sessions === 4)
  assert.deepEqual(
    await sessionIds(),
    ids.filter((id) => id !== third.auth.clientId),
  )
  // The id of a session that is gone still works as a cursor.
  assert.deepEqual(
    (await listed(registry).sessions({ limit: 1, beforeId: third.auth.clientId })).map(({ id }) => id),
    [ids[3]],
  )
  await listener.online({ clientId: third.auth.clientId, cookie: third.auth.cookie })
  assert.deepEqual(await sessionIds(), ids)
})

test('a visitor reaches the agent of its tunnel and no other, both ways, until the tunnel is gone', async () => {
  const listener = await startTestListener()
  const [{ agent: one }, { agent: two }] = [await listener.online(), await listener.online()]
  const [a, b] = [ok(await one.bind()), ok(await two.startLabels({ a: 'b' }))]
  const { dial } = listener.registry
  for (const [tunnelId, agent] of [
    [a.tunnelId, one],
    [b, two],
  ] as const) {
    const stream = await dial({ tunnelId, ...visit })
    if (stream instanceof DialFault) assert.fail(stream)
    await until(() => agent.visitors.length === 1)
    const heard: Buffer[] = []
    stream.attach({ data: (chunk) => heard.push(Buffer.from(chunk)), end() {}, drain() {}, closed() {} })
    agent.visitors[0]?.write(Buffer.from('from the service'))
    await until(() => Buffer.concat(heard).toString() === 'from the service')
    assert.equal(listener.load.connections, 1)
    stream.reset()
    await until(() => listener.load.connections === 0)
  }
  assert.deepEqual([one.visitors.length, two.visitors.length], [1, 1])
  await one.unbind(a.id)
  const fault = await dial({ tunnelId: a.tunnelId, ...visit })
  assert.equal(fault instanceof DialFault && fault.reason, 'offline')
})

test('an open connection goes on when its tunnel is unbound', async () => {
  const listener = await startTestListener()
  const { agent } = await listener.online()
  const { id, tunnelId } = ok(await agent.bind())
  const stream = await listener.registry.dial({ tunnelId, ...visit })
  if (stream instanceof DialFault) assert.fail(stream)
  await until(() => agent.visitors.length === 1)
  await agent.unbind(id)
  const heard: Buffer[] = []
  stream.attach({ data: (chunk) => heard.push(Buffer.from(chunk)), end() {}, drain() {}, closed() {} })
  agent.visitors[0]?.write(Buffer.from('still here'))
  await until(() => heard.length > 0)
  stream.reset()
})

test('one visitor that reads nothing does not hold up the others', async () => {
  const listener = await startTestListener()
  const { agent } = await listener.online()
  const { tunnelId } = ok(await agent.bind())
  const { dial } = listener.registry
  const stalled = (await dial({ tunnelId, ...visit })) as WireStream
  stalled.attach({ data() {}, end() {}, drain() {}, closed() {} })
  stalled.pause()
  await until(() => agent.visitors.length === 1)
  for (let i = 0; i < 16; i++) agent.visitors[0]?.write(Buffer.alloc(64 * 1024))
  await until(() => stalled.unread === 256 * 1024)
  for (let i = 2; i < 102; i++) {
    const stream = (await dial({ tunnelId, ...visit })) as WireStream
    await until(() => agent.visitors.length === i)
    let bytes = 0
    stream.attach({ data: (chunk) => (bytes += chunk.length), end() {}, drain() {}, closed() {} })
    agent.visitors[i - 1]?.write(Buffer.alloc(10_000))
    await until(() => bytes === 10_000)
    stream.reset()
  }
  // Its window is buffered, and not a byte more.
  assert.equal(stalled.unread, 256 * 1024)
  stalled.reset()
})
