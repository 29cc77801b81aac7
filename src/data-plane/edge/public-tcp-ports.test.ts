import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { portToKeep } from '../../../test/support/free-port.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { Peer } from '../../modules/phases.ts'
import {
  type OnPortConnection,
  PublicTcpPorts,
  type RemotePortHolders,
  type TcpPortsOptions,
} from './public-tcp-ports.ts'
import { closed, dialled } from './testing/test-front.ts'

const quiet = createLog({ level: 'silent' })
const all: PublicTcpPorts[] = []
after(() => {
  for (const ports of all) ports.closeAll()
})

function on(host: string): RemotePortHolders {
  return { open: (port) => ({ host, port }), close() {} }
}

const greet: OnPortConnection = (socket, port) => socket.end(`port ${port}`)

function make({
  onConnection = greet,
  ...options
}: Partial<TcpPortsOptions> & { onConnection?: OnPortConnection } = {}): PublicTcpPorts {
  const ports = new PublicTcpPorts({ holders: on('127.0.0.1'), log: quiet, ...options })
  ports.whenConnected(onConnection)
  all.push(ports)
  return ports
}

async function answer(port: number): Promise<string> {
  const visitor = await dialled(port)
  visitor.end()
  return Buffer.concat((await visitor.toArray()) as Buffer[]).toString()
}

async function isOpen(port: number): Promise<boolean> {
  try {
    const visitor = await dialled(port)
    visitor.destroy()
    return true
  } catch {
    return false
  }
}

test('an open port accepts connections and reports their peers', async () => {
  const port = await portToKeep()
  let peer: Peer | undefined
  const ports = make({
    now: () => 42,
    onConnection: (socket, _, from) => {
      assert.equal(socket.allowHalfOpen, true)
      peer = from
      socket.end('hello')
    },
  })
  assert.equal(await ports.open(port, 'a'), undefined)
  const visitor = await dialled(port)
  const localPort = visitor.localPort
  visitor.end()
  assert.equal(Buffer.concat((await visitor.toArray()) as Buffer[]).toString(), 'hello')
  assert.deepEqual(peer, { ip: '127.0.0.1', port: localPort, serverIp: '127.0.0.1', serverPort: port, startedAt: 42 })
})

test('a port stays open until its last owner closes it', async () => {
  const port = await portToKeep()
  const ports = make()
  assert.deepEqual(await Promise.all([ports.open(port, 'a'), ports.open(port, 'b')]), [undefined, undefined])
  assert.equal(await ports.open(port, 'a'), undefined, 'twice is as good as once')
  ports.close(port, 'a')
  ports.close(port, 'a')
  ports.close(port, 'stranger')
  assert.equal(await answer(port), `port ${port}`)
  ports.close(port, 'b')
  assert.equal(await isOpen(port), false)
  assert.equal(ports.size, 0)
})

test('connections stay open when their port is closed', async () => {
  const port = await portToKeep()
  let accepted: Socket | undefined
  const ports = make({
    onConnection: (socket) => {
      accepted = socket
      socket.write('one')
    },
  })
  await ports.open(port, 'a')
  const visitor = await dialled(port)
  await once(visitor, 'data')
  ports.close(port, 'a')
  assert.equal(await isOpen(port), false)
  accepted?.end('two')
  const [rest] = (await once(visitor, 'data')) as [Buffer]
  assert.equal(rest.toString(), 'two')
  visitor.end()
})

test('a port that another program has is reported as a value, and can be opened later', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  assert.ok(address && typeof address === 'object')
  const ports = make()
  const faults = await Promise.all([ports.open(address.port, 'a'), ports.open(address.port, 'b')])
  assert.deepEqual(
    faults.map((fault) => [fault?.reason, fault?.code]),
    [
      ['in_use', 'EADDRINUSE'],
      ['in_use', 'EADDRINUSE'],
    ],
  )
  assert.equal(ports.size, 0)
  ports.close(address.port, 'a')
  other.close()
  await once(other, 'close')
  assert.equal(await ports.open(address.port, 'a'), undefined)
  assert.equal(await answer(address.port), `port ${address.port}`)
})

test('an address that is not ours is reported as a value', async () => {
  // Of a network for documentation: RFC 5737.
  const fault = await make({ holders: on('192.0.2.1') }).open(await portToKeep(), 'a')
  assert.deepEqual([fault?.reason, fault?.code], ['unavailable', 'EADDRNOTAVAIL'])
  assert.match(fault?.message ?? '', /192\.0\.2\.1:\d+ cannot be opened/)
})

test('a port below 1024 is reported as a value, where the system reserves it', async (t) => {
  const fault = await make().open(1, 'a')
  if (!fault) {
    t.skip('this user may open any port')
    return
  }
  assert.equal(fault.reason, 'forbidden')
})

test('closing while it opens, and opening while it closes, end as requested last', async () => {
  const port = await portToKeep()
  const ports = make()
  const first = ports.open(port, 'a')
  ports.close(port, 'a')
  const second = ports.open(port, 'b')
  ports.close(port, 'b')
  const third = ports.open(port, 'c')
  assert.deepEqual(await Promise.all([first, second, third]), [undefined, undefined, undefined])
  assert.equal(await answer(port), `port ${port}`)
  ports.close(port, 'c')
  const again = ports.open(port, 'd')
  ports.close(port, 'd')
  await again
  assert.equal(await isOpen(port), false)
  assert.equal(ports.size, 0)
})

test('an edge that hands its port to another leaves no gap', async () => {
  const port = await portToKeep()
  const ports = make()
  await ports.open(port, 'old')
  const opening = ports.open(port, 'new')
  ports.close(port, 'old')
  assert.equal(await answer(port), `port ${port}`)
  assert.equal(await opening, undefined)
})

test('opening and closing 200 times, with visitors, leaves nothing behind', { timeout: 20_000 }, async () => {
  const port = await portToKeep()
  const ports = make()
  const before = sockets()
  for (let i = 0; i < 200; i++) {
    assert.equal(await ports.open(port, `owner ${i}`), undefined)
    if (i % 10 === 0) assert.equal(await answer(port), `port ${port}`)
    ports.close(port, `owner ${i}`)
  }
  assert.equal(ports.size, 0)
  // Handles are gone some turns of the loop after they are closed.
  while (sockets() > before) await new Promise((resolve) => setImmediate(resolve))
})

test('an error of the caller, or a reset, ends only that connection', async () => {
  const port = await portToKeep()
  let calls = 0
  const ports = make({
    onConnection: (socket) => {
      if (++calls === 1) throw new Error('a mistake of the caller')
      socket.end('hello')
    },
  })
  await ports.open(port, 'a')
  const unlucky = await dialled(port)
  await closed(unlucky.resume())
  const rude = await dialled(port)
  rude.resetAndDestroy()
  assert.equal(await answer(port), 'hello')
})

test('all can be closed at once', async () => {
  const ports = make()
  const numbers = [await portToKeep(), await portToKeep()]
  for (const port of numbers) await ports.open(port, 'a')
  ports.closeAll()
  for (const port of numbers) assert.equal(await isOpen(port), false)
  assert.equal(ports.size, 0)
})

/** How many sockets and listeners the process has. */
function sockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind.startsWith('TCP')).length
}
