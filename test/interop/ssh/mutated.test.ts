/** Clients that send what is not SSH, or not quite: each connection ends, and the gateway serves the next. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import type { Channel } from 'ssh2'
import { DialFault } from '../../../src/model/dial.ts'
import { serving, TestClient, TestGateway } from '../../../src/ssh/test-gateway.ts'
import { until } from '../../support/until.ts'

const HANDSHAKES = 1400
const PAYLOADS = 600

/** Connections at a time. */
const AT_ONCE = 20

/** How long a client waits after a mutated message for what may never come, in milliseconds. */
const WAIT_MS = 100

const seed = Math.floor(Math.random() * 2 ** 32)
const random = randomFrom(seed)

let gateway: TestGateway
before(async () => {
  const limits = { refusalMs: 20, requestMs: 5000, dialMs: 1000, failuresPerMinute: 1_000_000 }
  gateway = await new TestGateway({ limits }).listen()
})
after(() => gateway.close())

test(`${HANDSHAKES} mutated handshakes (seed ${seed})`, async () => {
  const recorded = await recordHandshake()
  await inTurns(HANDSHAKES, async () => {
    const socket = connect(gateway.port, '127.0.0.1').on('error', () => {})
    socket.resume()
    socket.end(mutate(recorded))
    await once(socket, 'close')
  })
  await serves()
})

test(`${PAYLOADS} mutated messages behind the handshake (seed ${seed})`, async () => {
  let mutated = 0
  await inTurns(PAYLOADS, async (i) => {
    const client = new TestClient(gateway.port)
    const sent = Promise.withResolvers<void>()
    client.ssh.on('handshake', () => {
      let untouched = i % 12
      const cipher = client.ssh._protocol._cipher
      const encrypt = cipher.encrypt
      cipher.encrypt = function encryptMutated(packet: Buffer) {
        if (untouched-- === 0) {
          mutated++
          mutatePayload(packet)
          setTimeout(sent.resolve, WAIT_MS)
        }
        encrypt.call(this, packet)
      }
    })
    client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => {
      const channel = accept()
      channel.on('error', () => {})
      channel.on('data', () => channel.end('answer'))
    })
    await Promise.race([useAll(client, `n${i}.example.test`), sent.promise])
    client.ssh._sock.destroy()
    await client.closed
  })
  assert.ok(mutated > PAYLOADS / 2, `${mutated} messages were mutated`)
  await serves()
})

/** One of each message that a client sends; what goes wrong is the business of the other end. */
async function useAll(client: TestClient, name: string): Promise<void> {
  try {
    await client.login()
    const [run] = await Promise.all([client.exec('http', { pty: true }), client.forward(name, 443)])
    run.channel.write('x')
    const tunnels = gateway.online.registry.liveSessions().flatMap((session) => session.tunnels.values())
    const tunnel = tunnels.find(({ endpoint }) => endpoint?.open.url.endsWith(name))
    const visitor = { ip: '192.0.2.1', port: 1, proto: 'https', edge: 'none', passthroughTls: false } as const
    const stream = await gateway.online.registry.dial({ tunnelId: tunnel?.id ?? '', ...visitor })
    if (stream instanceof DialFault) return
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.attach({ data() {}, end() {}, drain() {}, closed: () => resolve() })
    stream.write(Buffer.from('question'))
    stream.end()
    await promise
    await client.cancel(name, 443)
  } catch {
    // It was mutated.
  }
}

/** Nobody is left, and who keeps to the rules is served. */
async function serves(): Promise<void> {
  await until('all are gone', () => gateway.online.registry.liveSessions().length === 0)
  await until('none is on trial', () => gateway.door.numbers.unproven === 0)
  assert.deepEqual(gateway.endpoints.addresses, [])
  assert.deepEqual(
    gateway.logged.filter(({ level }) => level === 'error'),
    [],
  )
  const { client } = await serving(gateway)
  await client.leave()
}

/** What a client sends before its messages are enciphered, and the first of those. */
async function recordHandshake(): Promise<Buffer> {
  const chunks: Buffer[] = []
  const recorder = createServer((socket) => {
    const onward = connect(gateway.port, '127.0.0.1').on('error', () => {})
    socket.on('error', () => {})
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.pipe(onward).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(recorder, 'listening')
  const address = recorder.address()
  assert.ok(typeof address === 'object' && address)
  const client = await new TestClient(address.port).login()
  await client.leave()
  recorder.close()
  return Buffer.concat(chunks)
}

function mutate(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  const at = random(copy.length)
  switch (random(6)) {
    case 0:
      return copy.subarray(0, at)
    case 1:
      return Buffer.concat([copy.subarray(0, at), noise(1 + random(64)), copy.subarray(at)])
    case 2:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.max(0, at - random(200)))])
    case 3:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + random(200)))])
    case 4:
      copy.set(extreme(), Math.min(at, copy.length - 4))
      return copy
    default:
      for (let i = 0; i <= random(8); i++) copy[random(copy.length)] = random(256)
      return copy
  }
}

/** Behind the length of the packet and that of its padding, which the cipher writes. */
function mutatePayload(packet: Buffer): void {
  const from = 5
  if (packet.length < from + 5) return
  const at = from + random(packet.length - from - 4)
  if (random(3) === 0) packet.set(extreme(), at)
  else if (random(4) === 0) packet[from] = random(256)
  else packet[at] = random(256)
}

/** Lengths at which those who count go wrong. */
function extreme(): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE([0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 35_000][random(6)] ?? 0)
  return bytes
}

function noise(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random(256)))
}

async function inTurns(count: number, run: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await run(next++)
    }),
  )
}

/** Mulberry32: what failed can be run again. */
function randomFrom(start: number): (below: number) => number {
  let state = start
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}
