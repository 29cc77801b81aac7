import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { until } from '../../../test/support/until.ts'
import { TestNodes } from '../../data-plane/remote/testing/test-nodes.ts'
import { type AddressHolder, askNode, MAX_ASKED, readAsked, type ServedAnswer } from './ask-node.ts'
import { createNodeIdentity } from './node-identity.ts'
import { relaySession } from './relay-session.ts'

const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
})

const holder = (n: number): AddressHolder => ({
  place: `secure:${n}.${'long.'.repeat(45)}example.com`,
  tunnelId: `tn_${n}`,
  sessionId: `ts_${n}`,
})
const some = [holder(1), holder(2)]

async function asking() {
  const nodes = new TestNodes()
  closers.push(() => nodes.close())
  const identity = createNodeIdentity({ nodeId: 'a', planeId: 'control' }, nodes.authority)
  const ask = (port: number, { nodeId = 'b', holders = some, withinMs = 60_000 } = {}): Promise<ServedAnswer> =>
    askNode({ identity, node: { nodeId, address: { host: '127.0.0.1', port } }, holders, withinMs })
  return { nodes, ask }
}

test('a data plane says which places its node serves, without its control plane', async () => {
  const { nodes, ask } = await asking()
  const { port, listener } = await nodes.start('b', {
    answer: () => assert.fail('the control plane was asked'),
    listener: { serves: (holders) => holders.map(({ tunnelId }) => tunnelId === 'tn_2') },
  })
  assert.deepEqual(await ask(port), [false, true])
  assert.deepEqual(await ask(port, { holders: [] }), [])
  const many = Array.from({ length: MAX_ASKED }, (_, i) => holder(i % 3))
  assert.deepEqual(
    await ask(port, { holders: many }),
    many.map(({ tunnelId }) => tunnelId === 'tn_2'),
  )
  await until('the connection is closed', () => listener.links === 0)
})

test('a node that is not there any more refuses, also when another node answers in its place', async () => {
  const { nodes, ask } = await asking()
  const other = await nodes.start('c')
  assert.equal(await ask(other.port), 'refused')
  await other.close()
  assert.equal(await ask(other.port), 'refused')
})

test('a node that accepts and says nothing is silent', async () => {
  const { ask } = await asking()
  const sockets: Socket[] = []
  const server = createServer((socket) => void sockets.push(socket.on('error', () => {})))
  closers.push(
    () => server.close(),
    () => sockets.forEach((socket) => void socket.destroy()),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  assert.equal(await ask(address.port, { withinMs: 200 }), 'silent')
})

test('an answer that is none is unclear', async () => {
  const { nodes, ask } = await asking()
  const { port } = await nodes.start('b', { listener: { serves: () => [true] } })
  assert.equal(await ask(port), 'unclear')
})

test('a node of a version that does not know the question is unclear', async () => {
  const { nodes, ask } = await asking()
  const { listenerTls } = createNodeIdentity({ nodeId: 'b', planeId: 'w1' }, nodes.authority)
  const server = createTlsServer(listenerTls, (socket) => {
    // As such a version answers every type of stream that it does not know.
    relaySession(socket, {
      opens: false,
      isFar: true,
      onStream: (stream) => stream.reset('protocol_error'),
      onClosed() {},
    })
  })
  closers.push(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  assert.equal(await ask(address.port), 'unclear')
})

test('only a list of holders is a question', () => {
  assert.deepEqual(readAsked({ serves: some }), some)
  for (const bad of [
    null,
    3,
    {},
    { serves: 3 },
    { serves: [3] },
    { serves: [{ place: 'a', tunnelId: 'b' }] },
    { serves: Array(MAX_ASKED + 1).fill(holder(1)) },
  ]) {
    assert.equal(readAsked(bad), undefined)
  }
})
