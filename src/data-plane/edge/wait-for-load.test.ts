import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { peerOf } from '../../lib/net/peer.ts'
import { meetVisitors } from '../../lib/net/trusted-hop.ts'
import { type Held, waitForLoad } from './wait-for-load.ts'

let server: Server
let held: Held
let clients: Socket[]
/** Sockets that came in. */
let met: Socket[]
/** Sockets of the server, whether they came in or not. */
let accepted: Socket[]

beforeEach(async () => {
  held = waitForLoad(meetVisitors([]), 2)
  clients = []
  met = []
  accepted = []
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket.on('error', () => {}))
    const peer = peerOf(socket, 7)
    if (peer) held.meet(socket, peer, (visitor) => void (visitor && met.push(socket)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => {
  for (const socket of [...clients, ...accepted]) socket.destroy()
  server.close()
})

async function visit(): Promise<Socket> {
  const { port } = server.address() as AddressInfo // it listens on a port
  const client = connect({ host: '127.0.0.1', port })
  client.on('error', () => {})
  clients.push(client)
  const before = accepted.length
  await once(client, 'connect')
  await until('a connection', () => accepted.length > before)
  return client
}

test('visitors who come early are met when they are let in, with what they sent', async () => {
  const client = await visit()
  client.end('hello')
  await until('what the visitor sends', () => (accepted[0]?.readableLength ?? 0) > 0)
  assert.equal(met.length, 0)
  held.letIn()
  const read: Buffer[] = []
  const [first] = met
  if (first) for await (const chunk of first) read.push(chunk as Buffer) // no encoding is set
  assert.equal(Buffer.concat(read).toString(), 'hello')
})

test('visitors who come later do not wait', async () => {
  held.letIn()
  await visit()
  assert.equal(met.length, 1)
})

test('a visitor who left meanwhile is not met', async () => {
  const client = await visit()
  client.resetAndDestroy()
  await until('its end', () => accepted[0]?.closed === true)
  held.letIn()
  assert.deepEqual(met, [])
})

test('no more visitors wait than are allowed: the oldest of a source gives way', async () => {
  const first = await visit()
  await visit()
  await visit()
  await until('the end of the first', () => first.closed)
  held.letIn()
  assert.deepEqual(met, accepted.slice(1))
})

test('all are sent away when the edges are never loaded', async () => {
  const client = await visit()
  held.sendAway()
  await until('its end', () => client.closed)
  assert.deepEqual(met, [])
})
