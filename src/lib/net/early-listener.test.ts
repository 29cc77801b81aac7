import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import net, { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { EarlyListener, type ServerHandle } from './early-listener.ts'
import { listenOn } from './listen-on.ts'
import { httpSockets } from './socket-options.ts'

const everybody = { sockets: httpSockets, admits: () => true }
const nothing = (): void => {}

async function early(t: TestContext, options: Partial<typeof everybody> = {}): Promise<EarlyListener> {
  const listener = await EarlyListener.open({ host: '127.0.0.1', port: 0 }, { ...everybody, ...options })
  t.after(() => listener.close())
  return listener
}

async function dial(t: TestContext, { address }: Pick<EarlyListener, 'address'>): Promise<Socket> {
  const socket = connect(address.port, '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

test('connections from before are served with all they sent, and so are later ones, at the same address', async (t) => {
  const listener = await early(t)
  const before = await dial(t, listener)
  before.write('before')
  const server = createServer((socket) => void socket.pipe(socket))
  t.after(() => server.close())
  const address = await listenOn(server, listener, nothing)
  assert.deepEqual(address, listener.address)
  const after = await dial(t, listener)
  after.write('after')
  for (const [socket, said] of [[before, 'before'] as const, [after, 'after'] as const]) {
    assert.equal(String((await once(socket, 'data'))[0]), said)
    socket.destroy()
  }
})

test('an HTTP server answers a request that was sent before the server was there', async (t) => {
  const listener = await early(t)
  const visitor = await dial(t, listener)
  visitor.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  const server = createHttpServer((_, response) => response.end('here'))
  t.after(() => server.close().closeAllConnections())
  await listenOn(server, listener, nothing)
  assert.match(String((await once(visitor, 'data'))[0]), /^HTTP\/1\.1 200 OK\r\n/)
})

test('it stops listening when the server that took it over closes', async (t) => {
  const listener = await early(t)
  const server = createServer()
  await listenOn(server, listener, nothing)
  // The socket now belongs to the server, so this does nothing.
  listener.close()
  ;(await dial(t, listener)).destroy()
  server.close()
  await assert.rejects(dial(t, listener), { code: 'ECONNREFUSED' })
})

test('when it closes before a server took it over, it closes the waiting connections', async (t) => {
  const listener = await early(t)
  const visitor = await dial(t, listener)
  listener.close()
  await once(visitor, 'close')
  await assert.rejects(dial(t, listener), { code: 'ECONNREFUSED' })
})

test('a connection too many is closed, and one that leaves while it waits does no harm', async (t) => {
  let room = 1
  const listener = await early(t, { admits: () => room-- > 0 })
  const first = await dial(t, listener)
  await once(await dial(t, listener), 'close')
  first.resetAndDestroy()
  const server = createServer((socket) => socket.on('error', nothing).end('served'))
  t.after(() => server.close())
  await listenOn(server, listener, nothing)
  assert.equal(String((await once(await dial(t, listener), 'data'))[0]), 'served')
})

test('an address in use is an error of the system', async (t) => {
  const { address } = await early(t)
  await assert.rejects(EarlyListener.open({ host: '127.0.0.1', port: address.port }, everybody), { code: 'EADDRINUSE' })
})

/** A bound socket that does not listen yet, as one process passes it to another. */
function boundSocket(): { handle: ServerHandle; address: AddressInfo } {
  const { _createServerHandle: create } = net as unknown as {
    _createServerHandle: (host: string, port: number, type: number) => { getsockname(out: object): number }
  }
  const handle = create('127.0.0.1', 0, 4)
  const address = {}
  handle.getsockname(address)
  return { handle, address: address as AddressInfo }
}

test('on a socket that was passed, connections from before the takeover wait', async (t) => {
  const { handle, address } = boundSocket()
  const listener = await EarlyListener.open({ handle }, everybody)
  assert.equal(listener.address.port, address.port)
  const visitor = await dial(t, listener)
  const server = createServer((socket) => void socket.end('served'))
  t.after(() => server.close())
  await listenOn(server, listener, nothing)
  assert.equal(String((await once(visitor, 'data'))[0]), 'served')
})

test('a listener for later listens only when it is taken over', async (t) => {
  const { handle, address } = boundSocket()
  const listener = EarlyListener.later(handle, address, everybody)
  await assert.rejects(dial(t, listener), { code: 'ECONNREFUSED' })
  const server = createServer((socket) => void socket.end('served'))
  t.after(() => server.close())
  await listenOn(server, listener, nothing)
  assert.equal(String((await once(await dial(t, listener), 'data'))[0]), 'served')
})

test('connections to a further socket are served like the others, until that ends', async (t) => {
  const listener = await early(t)
  const other = boundSocket()
  const end = await listener.alsoAt(other.handle)
  const before = await dial(t, { address: other.address })
  const server = createServer((socket) => void socket.end('served'))
  t.after(() => server.close())
  await listenOn(server, listener, nothing)
  const after = await dial(t, { address: other.address })
  for (const socket of [before, after]) assert.equal(String((await once(socket, 'data'))[0]), 'served')
  end()
  await assert.rejects(dial(t, { address: other.address }), { code: 'ECONNREFUSED' })
  assert.equal(String((await once(await dial(t, listener), 'data'))[0]), 'served')
})
