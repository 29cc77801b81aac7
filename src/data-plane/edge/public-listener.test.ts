import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { createLog } from '../../lib/log/create-log.ts'
import { ListenFault } from './open-listener.ts'
import { type Greeted, PublicListener, type PublicListenerOptions } from './public-listener.ts'
import { closed, dialled, Front, heardHello, tlsEdge } from './testing/test-front.ts'

let hello: Buffer
before(async () => {
  hello = await heardHello((port) => connect({ port, servername: 'a.test' }).on('error', () => {}))
})

const listeners: PublicListener[] = []
after(() => Promise.all(listeners.map((listener) => listener.close())))

const quiet = createLog({ level: 'silent' })

async function start(options: Partial<PublicListenerOptions> = {}) {
  const taken: Greeted[] = []
  const faults: string[] = []
  const listener = new PublicListener({
    onConnection: (greeted) => {
      taken.push(greeted)
      greeted.socket.end('taken')
    },
    onFault: (fault) => faults.push(fault),
    log: quiet,
    ...options,
  })
  listeners.push(listener)
  const address = await listener.listen({ host: '127.0.0.1', port: 0 })
  assert.ok(!(address instanceof ListenFault))
  return { listener, taken, faults, port: address.port }
}

async function greet(port: number): Promise<string> {
  const visitor = await dialled(port)
  visitor.end(hello)
  return Buffer.concat((await visitor.toArray()) as Buffer[]).toString()
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

test('a connection comes with its hello and the addresses of both ends', async () => {
  const { port, taken, listener } = await start({ now: () => 42 })
  const visitor = await dialled(port)
  const { localPort } = visitor
  visitor.end(hello)
  await visitor.toArray()
  const [greeted] = taken
  assert.equal(greeted?.hello.serverName, 'a.test')
  assert.deepEqual(greeted.peer, {
    ...{ ip: '127.0.0.1', port: localPort, serverIp: '127.0.0.1', serverPort: port, startedAt: 42 },
  })
  assert.equal(greeted.socket.allowHalfOpen, true)
  assert.equal(listener.pending, 0)
})

test('an IPv4 visitor of an IPv6 listener has an IPv4 address', async (t) => {
  const { listener, taken } = await start()
  await listener.close()
  const address = await listener.listen({ host: '::', port: 0 })
  if (address instanceof ListenFault) {
    t.skip('no IPv6 on this machine')
    return
  }
  await greet(address.port)
  assert.equal(taken[0]?.peer.ip, '127.0.0.1')
  assert.equal(taken[0]?.peer.serverIp, '127.0.0.1')
})

test('a thousand visitors without a complete hello do not stop others, and are closed in time', async () => {
  const { port, listener, faults } = await start({ helloTimeoutMs: 3000 })
  const idle: Socket[] = []
  for (let i = 0; i < 1000; i++) {
    const visitor = await dialled(port)
    visitor.write(hello.subarray(0, i % 100))
    idle.push(visitor.resume())
  }
  for (let i = 0; i < 20; i++) assert.equal(await greet(port), 'taken')
  assert.ok(listener.pending > 0, 'the others were served while they waited')
  await Promise.all(idle.map((visitor) => closed(visitor)))
  await until(() => listener.pending === 0)
  assert.deepEqual([...new Set(faults)], ['timeout'])
  assert.equal(faults.length, 1000)
})

test('when too many wait, the one that has waited longest is closed', async () => {
  const { port, listener, faults } = await start({ maxPending: 3 })
  const [first, second] = [await dialled(port), await dialled(port)]
  await until(() => listener.pending === 2)
  await dialled(port)
  await until(() => listener.pending === 3)
  assert.equal(await greet(port), 'taken')
  await closed(first.resume())
  assert.deepEqual(faults, ['crowded'])
  assert.equal(second.closed, false)
  assert.equal(listener.pending, 2)
})

test('a visitor that is being turned away counts, and is closed first', async () => {
  const { port, listener, faults } = await start({ maxPending: 2 })
  const waiting = await dialled(port)
  await until(() => listener.pending === 1)
  const http = await dialled(port)
  http.write('GET / HTTP/1.1\r\n\r\n')
  await until(() => faults.length === 1)
  assert.equal(listener.pending, 2)
  assert.equal(await greet(port), 'taken')
  await until(() => listener.pending === 1)
  assert.equal(waiting.closed, false)
  assert.deepEqual(faults, ['plain_http'])
  waiting.destroy()
  http.destroy()
})

test('a visitor that resets at any point is forgotten', async () => {
  const { port, listener, faults } = await start()
  for (const sent of [0, 1, 5, 50]) {
    const visitor = await dialled(port)
    visitor.write(hello.subarray(0, sent))
    await until(() => listener.pending === 1)
    visitor.resetAndDestroy()
    await until(() => listener.pending === 0)
  }
  assert.deepEqual([...new Set(faults)], ['closed'])
  const late = await dialled(port)
  late.write(hello)
  late.resetAndDestroy()
  assert.equal(await greet(port), 'taken')
})

test('an error of the caller ends only that connection', async () => {
  let calls = 0
  const lines: string[] = []
  const { port } = await start({
    log: createLog({ format: 'json', destination: { write: (line) => lines.push(line) } }),
    onConnection: ({ socket }) => {
      if (++calls === 1) throw new Error('a mistake of the caller')
      socket.end('taken')
    },
  })
  assert.equal(await greet(port), '')
  assert.equal(await greet(port), 'taken')
  assert.equal(lines.filter((line) => line.includes('a mistake of the caller')).length, 1)
})

test('closing stops accepting, lets hellos under way arrive, and leaves connections that were handed on', async () => {
  let handed: Socket | undefined
  const { port, listener } = await start({
    onConnection: ({ socket }) => {
      handed = socket
    },
  })
  const early = await dialled(port)
  early.write(hello)
  await until(() => handed !== undefined)
  const underWay = await dialled(port)
  underWay.write(hello.subarray(0, 50))
  await until(() => listener.pending === 1)
  let isOver = false
  const over = listener.close().then(() => {
    isOver = true
  })
  await assert.rejects(dialled(port), { code: 'ECONNREFUSED' })
  assert.equal(isOver, false)
  underWay.write(hello.subarray(50))
  await over
  assert.equal(early.closed, false)
  handed?.end('still here')
  early.destroy()
  underWay.destroy()
})

test('a port that is taken is reported as a value', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  assert.ok(address && typeof address === 'object')
  const listener = new PublicListener({ onConnection: () => {}, log: quiet })
  const fault = await listener.listen({ host: '127.0.0.1', port: address.port })
  assert.ok(fault instanceof ListenFault)
  assert.deepEqual([fault.reason, fault.code], ['in_use', 'EADDRINUSE'])
  other.close()
})

test('curl, and a browser that uses http://, understand the answer', async (t) => {
  const front = await new Front({
    edges: { 'a.localhost': tlsEdge('a') },
    onSecured: ({ socket }) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi'))
    },
  }).start()
  const { port } = front
  const folder = mkdtempSync(join(tmpdir(), 'postern-edge-'))
  const ca = join(folder, 'ca.pem')
  writeFileSync(ca, front.made.certPem)
  const curl = (url: string, ...more: string[]) => {
    const args = ['-sS', '--noproxy', '*', '--resolve', `a.localhost:${port}:127.0.0.1`, ...more, url]
    return promisify(execFile)('curl', args).catch(
      (error: NodeJS.ErrnoException & { stdout?: string; stderr?: string }) => error,
    )
  }
  const good = await curl(`https://a.localhost:${port}/`, '--cacert', ca, '--http1.1')
  if ('code' in good && good.code === 'ENOENT') {
    t.skip('no curl on this machine')
    return
  }
  assert.equal(good.stdout, 'hi')
  const plain = await curl(`http://a.localhost:${port}/`, '-i')
  assert.match(plain.stdout ?? '', /^HTTP\/1.1 400 Bad Request.*https:\/\//s)
  const nameless = await curl(`https://127.0.0.1:${port}/`, '-k')
  assert.match(nameless.stderr ?? '', /unrecognized name/)
  rmSync(folder, { recursive: true })
  await front.stop()
})
