import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { descriptorOf } from '../../../test/support/service-manager.ts'
import { type BoundSocket, bindSocket, missingInNode } from './socket-handle.ts'

const anywhere = { host: '127.0.0.1', port: 0 }

async function bind(t: TestContext, socketAddress = anywhere, isSpread = true): Promise<BoundSocket> {
  const socket = await bindSocket(socketAddress, { isSpread })
  t.after(() => socket.close())
  return socket
}

async function serve(t: TestContext, { handle }: BoundSocket, says: string): Promise<Server> {
  const server = createServer((socket) => void socket.end(says))
  t.after(() => server.close())
  server.listen(handle)
  await once(server, 'listening')
  return server
}

async function hears(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const [said] = await once(socket, 'data')
  socket.destroy()
  return String(said)
}

test('this version of Node can pass sockets', () => assert.equal(missingInNode(), undefined))

test('two sockets on one port both get connections', async (t) => {
  const a = await bind(t)
  const b = await bind(t, { host: '127.0.0.1', port: a.address.port })
  assert.equal(b.address.port, a.address.port)
  await serve(t, a, 'a')
  await serve(t, b, 'b')
  // The system chooses by a hash of both addresses; it is practically impossible that all hundred go to one socket.
  const heard = new Set<string>()
  for (let i = 0; i < 100 && heard.size < 2; i++) heard.add(await hears(a.address.port))
  assert.deepEqual([...heard].toSorted(), ['a', 'b'])
})

test('a host name is looked up', async (t) => {
  const { address } = await bind(t, { host: 'localhost', port: 0 })
  assert.ok(['127.0.0.1', '::1'].includes(address.address))
})

test('an address that is taken is an error of the system, like that of a server', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number } // as it listens on a port
  for (const isSpread of [true, false]) {
    const failed = bindSocket({ host: '127.0.0.1', port }, { isSpread })
    await assert.rejects(failed, { code: 'EADDRINUSE', syscall: 'listen', port })
  }
})

test('an address that this machine does not have is an error of the system', async () => {
  await assert.rejects(bindSocket({ host: '192.0.2.1', port: 0 }, { isSpread: true }), { code: 'EADDRNOTAVAIL' })
})

test('an address of sockets that share it is refused to a socket that wants it alone', async (t) => {
  const a = await bind(t)
  await serve(t, a, 'a')
  const { port } = a.address
  await assert.rejects(bindSocket({ host: '127.0.0.1', port }, { isSpread: false }), { code: 'EADDRINUSE' })
})

/** The result of `adoptSocket` in a process that is started with this socket as descriptor 3. */
function adopted(fd: number): string {
  const module = JSON.stringify(new URL('socket-handle.ts', import.meta.url).href)
  const code = `const { adoptSocket } = await import(${module})
    try { console.log(adoptSocket(3).address.port) } catch (error) { console.log(error.code) }
    process.exit()`
  const args = ['--input-type=module', '-e', code]
  const { stdout } = spawnSync(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', fd], encoding: 'utf8' })
  return stdout.trim()
}

test('a socket that the process was started with is known by its address; a connection cannot listen', async (t) => {
  const server = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number } // as it listens on a port
  assert.equal(adopted(descriptorOf(server)), String(port))
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  assert.equal(adopted(descriptorOf(socket)), 'EINVAL')
})
