/** The limits on clients: each test fails if its limit is removed. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { afterEach, test } from 'node:test'
import type { Channel } from 'ssh2'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { fingerprintOf } from '../../lib/ssh-keys/ssh-public-key.ts'
import { DialFault } from '../../model/dial.ts'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { sshLimits } from './ssh-limits.ts'
import { assertPrinted, dial, serving, TestGateway, theSession } from './testing/test-gateway.ts'
import { kexInit, keyLogin, makeKey, message, messages, RawClient } from './testing/test-raw.ts'

type Options = NonNullable<ConstructorParameters<typeof TestGateway>[0]>

/** Of the server, in the order they came. */
const sockets: Socket[] = []
const running: TestGateway[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.close()))
  sockets.length = 0
})

async function start(limits: Options['limits'] = {}): Promise<TestGateway> {
  const meet: Options['meet'] = (socket, peer, then) => {
    sockets.push(socket)
    then(peer)
  }
  const gateway = await new TestGateway({ meet, limits: { refusalMs: 50, ...limits } }).listen()
  running.push(gateway)
  return gateway
}

/** Checks that no session, tunnel or connection is left. */
async function isEmpty(gateway: TestGateway): Promise<void> {
  await until(() => gateway.online.registry.liveSessions().length === 0)
  await until(() => gateway.listener.metrics.unproven === 0)
  const { sessions, tunnels, endpoints, connections } = gateway.online.load
  assert.deepEqual(
    { sessions, tunnels, endpoints, connections },
    { sessions: 0, tunnels: 0, endpoints: 0, connections: 0 },
  )
  assert.deepEqual(gateway.endpoints.addresses, [])
  await until(() => sockets.every((socket) => socket.destroyed))
}

function wrongLogin(raw: RawClient): Buffer {
  const { blob, sign } = makeKey()
  return keyLogin(raw, { blob, algorithm: 'ssh-ed25519', signer: sign })
}

// Before the login

test('a client that only chatters after the handshake gets no more time than a silent one', async () => {
  const gateway = await start({ authenticationMs: 500 })
  const raw = await RawClient.atLogin(gateway.port)
  const chatter = setInterval(() => raw.send(message(messages.ignore, 'x')), 20)
  await raw.closed
  clearInterval(chatter)
  await isEmpty(gateway)
})

test('a source that fails too often is refused late, and let in at once with the right key', async () => {
  const gateway = await start({ tries: 1, failuresPerMinute: 1, lateRefusalMs: 100_000 })
  const first = await RawClient.atLogin(gateway.port)
  await first.login(wrongLogin(first))
  await first.closed
  const late = await RawClient.atLogin(gateway.port)
  late.send(wrongLogin(late))
  await until(() => gateway.listener.metrics.failures === 2)
  await (await serving(gateway)).client.leave()
  assert.ok(!late.isClosed && late.answers(messages.authFailure).length === 0, 'it waits for its refusal')
  late.leave()
})

test('failures of many connections count together, and each is logged once', async () => {
  const gateway = await start({ tries: 1, failuresPerMinute: 3, lateRefusalMs: 0 })
  for (let i = 0; i < 6; i++) {
    const raw = await RawClient.atLogin(gateway.port)
    await raw.login(wrongLogin(raw))
    await raw.closed
  }
  assert.equal(gateway.listener.metrics.failures, 6)
  assert.equal(gateway.logged.filter(({ msg }) => msg === 'agent connection refused').length, 3)
})

test('a client that leaves after its first wrong key has failed, and one that ends with the right key has not', async () => {
  const gateway = await start()
  const raw = await RawClient.atLogin(gateway.port)
  await raw.login(wrongLogin(raw))
  raw.leave()
  await until(() => gateway.listener.metrics.failures === 1)
  const patient = await RawClient.atLogin(gateway.port)
  const right = makeKey()
  gateway.credentials.set(fingerprintOf(right.blob), { id: 'sshcr_right', acl: [] })
  for (let i = 0; i < 5; i++) await patient.login(wrongLogin(patient))
  await patient.login(keyLogin(patient, { blob: right.blob, algorithm: 'ssh-ed25519', signer: right.sign }))
  theSession(gateway)
  patient.leave()
  await isEmpty(gateway)
  assert.equal(gateway.listener.metrics.failures, 1)
})

// After the login

test('a client that answers keep-alives stays', async () => {
  const gateway = await start({ keepAliveMs: 100, missedKeepAlives: 3 })
  const { client } = await serving(gateway)
  const { id } = theSession(gateway)
  const { _decipher: decipher } = client.ssh._protocol
  const onPayload = decipher._onPayload
  let asked = 0
  decipher._onPayload = (payload) => {
    if (payload[0] === messages.globalRequest) asked++
    return onPayload(payload)
  }
  await until(() => asked === 6)
  assert.equal(theSession(gateway).id, id)
  await client.leave()
})

test('an unfinished key exchange ends the connection', async () => {
  const gateway = await start({ authenticationMs: 1000 })
  const raw = await RawClient.serving(gateway)
  raw.send(kexInit())
  await raw.closed
  await isEmpty(gateway)
})

test('a client that ends its direction goes offline, even if it does not read', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => void accept())
  const stream = await dial(gateway)
  stream.attach({ data() {}, end() {}, drain() {}, closed() {} })
  client.ssh._sock.pause()
  const [socket] = sockets
  assert.ok(socket)
  fill(socket, 1024 * 1024)
  client.ssh._sock.end()
  await isEmpty(gateway)
  client.ssh._sock.destroy()
})

test('the terminals of a connection are limited, closed ones included', async () => {
  const gateway = await start({ terminals: 3 })
  const raw = await RawClient.online(gateway)
  for (let i = 0; i < 3; i++) {
    const theirs = await raw.openTerminal(i)
    raw.send(message(messages.channelClose, theirs))
  }
  raw.send(message(messages.channelOpen, 'session', 3, 100_000, 32_000))
  await until(() => raw.answers(messages.channelRefused).length === 1)
  raw.leave()
  await isEmpty(gateway)
})

test('the forwards of a connection are limited', async () => {
  const gateway = await start({ forwards: 3 })
  const { client, run } = await serving(gateway)
  await client.forward('b.example.test', 443)
  await client.forward('c.example.test', 443)
  await assert.rejects(client.forward('d.example.test', 443))
  assertPrinted(await run.printed, 1105)
  await isEmpty(gateway)
})

test('a client that asks for tiny packets is disconnected, and its visitor is told', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const dialled = dial(gateway)
  await until(() => raw.answers(messages.channelOpen).length === 1)
  raw.send(message(messages.channelOpened, theirChannel(raw), 7, 1_000_000, 1))
  await assert.rejects(dialled, (error) => error instanceof DialFault)
  await isEmpty(gateway)
})

test('a terminal that asks for tiny packets ends the connection too', async () => {
  const gateway = await start({ requestMs: 60_000 })
  const raw = await RawClient.online(gateway)
  raw.send(message(messages.channelOpen, 'session', 0, 1_000_000, 1))
  await raw.closed
  await isEmpty(gateway)
})

test('a client that sends much while its forward is being decided is cut off', async () => {
  const gateway = await start({ requestMs: 60_000 })
  const raw = await RawClient.online(gateway)
  raw.send(message(messages.globalRequest, 'tcpip-forward', true, 'a.example.test', 443))
  const asked = message(messages.globalRequest, 'keepalive@openssh.com', true, Buffer.alloc(30_000))
  for (let i = 0; i < 100 && !raw.isClosed; i++) raw.send(asked)
  await raw.closed
  await isEmpty(gateway)
})

test('a client that sends requests and never reads is no longer read before answers fill the memory', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const [socket] = sockets
  assert.ok(socket)
  raw.ssh._sock.pause()
  fill(socket, 5 * 1024 * 1024)
  const asked = message(messages.globalRequest, 'keepalive@openssh.com', true)
  raw.send(asked)
  await until(() => socket.isPaused())
  const { writableLength } = socket
  for (let i = 0; i < 500; i++) raw.send(asked)
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(socket.writableLength, writableLength, 'nothing more was answered')
  raw.leave()
  await isEmpty(gateway)
})

// Visitors

const CHANNELS = 1000

test(`${CHANNELS} visitors of a client that reads nothing cost no more than the bytes each sent before it was paused`, async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => void accept().on('error', () => {}))
  const visitors = await Promise.all(Array.from({ length: CHANNELS }, () => dial(gateway)))
  assert.equal(theSession(gateway).connections, CHANNELS)
  client.ssh._sock.pause()
  const chunk = Buffer.alloc(64 * 1024)
  let taken = 0
  for (const visitor of visitors) {
    visitor.attach({ data() {}, end() {}, drain() {}, closed() {} })
    // A well-behaved writer stops once it is asked to wait.
    for (let i = 0; i < 16; i++) {
      taken += chunk.length
      if (!visitor.write(chunk)) break
    }
  }
  const [socket] = sockets
  assert.ok(socket && socket.writableLength < 8 * 1024 * 1024, `${socket?.writableLength} bytes wait in the socket`)
  assert.ok(taken < (CHANNELS + 300) * chunk.length, `${taken} bytes were taken`)
  for (const [i, visitor] of visitors.entries()) {
    if (i % 2 === 0) visitor.reset()
  }
  client.ssh._sock.destroy()
  await isEmpty(gateway)
})

test('a visitor that sends a gigabyte to a client that does not read is asked to wait', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const dialled = dial(gateway)
  await until(() => raw.answers(messages.channelOpen).length === 1)
  // The client grants the largest window, and reads nothing.
  raw.send(message(messages.channelOpened, theirChannel(raw), 7, 0xffffffff, 32_000))
  const stream = await dialled
  raw.ssh._sock.pause()
  stream.attach({ data() {}, end() {}, drain() {}, closed() {} })
  const chunk = Buffer.alloc(64 * 1024)
  let written = 0
  while (written < 1024 ** 3 && stream.write(chunk)) written += chunk.length
  assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`)
  const [socket] = sockets
  assert.ok(socket && socket.writableLength < 8 * 1024 * 1024)
  raw.leave()
  await isEmpty(gateway)
})

test('the bytes that a client may send unread are bounded, however many visitors do not read', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const { channels } = sshLimits
  const pending = Promise.allSettled(Array.from({ length: channels }, () => dial(gateway)))
  await until(() => raw.answers(messages.channelOpen).length === channels)
  const granted = raw.answers(messages.channelOpen).map((opened) => opened.readUInt32BE(9 + opened.readUInt32BE(1)))
  const all = granted.reduce((sum, bytes) => sum + bytes, 0)
  assert.ok(all <= 256 * 1024 * 1024, `${all} bytes are granted`)
  raw.leave()
  await pending
  await isEmpty(gateway)
})

test('one of many channels gets a larger window once it is read', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => {
    const channel = accept()
    channel.once('data', () => channel.end(Buffer.alloc(5_000_000)))
  })
  const idle = await Promise.all(Array.from({ length: 300 }, () => dial(gateway)))
  const stream = idle.at(-1)
  assert.ok(stream)
  let heard = 0
  const ended = Promise.withResolvers<void>()
  const data = ({ length }: Buffer): void => {
    heard += length
  }
  stream.attach({ data, end: ended.resolve, drain() {}, closed() {} })
  stream.write(Buffer.from('go'))
  await ended.promise
  assert.equal(heard, 5_000_000)
  client.ssh._sock.destroy()
  await isEmpty(gateway)
})

/** Which side acts first, and what the client still sends afterwards. */
const endings: readonly [what: string, end: (stream: ByteStream, raw: RawClient, theirs: number) => void][] = [
  [
    'the visitor leaves, the client answers',
    (stream, raw, theirs) => {
      stream.reset()
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  ['the client closes at once', (_stream, raw, theirs) => raw.send(message(messages.channelClose, theirs))],
  [
    'the client closes twice',
    (_stream, raw, theirs) => {
      raw.send(message(messages.channelClose, theirs))
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the client ends, then closes',
    (_stream, raw, theirs) => {
      raw.send(message(messages.channelEnd, theirs))
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the client ends, the visitor ends, the client closes',
    (stream, raw, theirs) => {
      raw.send(message(messages.channelEnd, theirs))
      stream.end()
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the visitor ends, then leaves, and the client closes',
    (stream, raw, theirs) => {
      stream.end()
      stream.reset()
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the client closes with much unsent',
    (stream, raw, theirs) => {
      stream.write(Buffer.alloc(5_000_000))
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the client sends after its end',
    (_stream, raw, theirs) => {
      raw.send(message(messages.channelEnd, theirs))
      raw.send(message(messages.channelData, theirs, 'late'))
      raw.send(message(messages.channelClose, theirs))
    },
  ],
  [
    'the client closes and then grants more',
    (stream, raw, theirs) => {
      stream.write(Buffer.alloc(5_000_000))
      raw.send(message(messages.channelClose, theirs))
      raw.send(message(messages.windowAdjust, theirs, 5_000_000))
    },
  ],
]
for (const [what, end] of endings) {
  test(`${what}: nothing is left of the connection, and the session goes on`, async () => {
    const gateway = await start()
    const raw = await RawClient.serving(gateway)
    const dialled = dial(gateway)
    await until(() => raw.answers(messages.channelOpen).length === 1)
    raw.send(message(messages.channelOpened, theirChannel(raw), 7, 100_000, 32_000))
    const stream = await dialled
    let closings = 0
    stream.attach({ data() {}, end() {}, drain() {}, closed: () => closings++ })
    end(stream, raw, theirChannel(raw))
    await until(() => theSession(gateway).connections === 0 && closings > 0)
    assert.equal(closings, 1)
    const again = dial(gateway)
    await until(() => raw.answers(messages.channelOpen).length === 2)
    raw.send(message(messages.channelRefused, theirChannel(raw, 1), 1, '', ''))
    await assert.rejects(again, (error) => error instanceof DialFault && error.reason === 'refused')
    assert.equal(theSession(gateway).connections, 0)
    raw.leave()
    await isEmpty(gateway)
  })
}

test('when a client is gone all of its visitors are disconnected, at any stage', async () => {
  const gateway = await start()
  const raw = await RawClient.serving(gateway)
  const pending = dial(gateway)
  await until(() => raw.answers(messages.channelOpen).length === 1)
  const dialled = dial(gateway)
  await until(() => raw.answers(messages.channelOpen).length === 2)
  raw.send(message(messages.channelOpened, theirChannel(raw, 1), 8, 100_000, 32_000))
  const stream = await dialled
  const closed = Promise.withResolvers<Error | undefined>()
  stream.attach({ data() {}, end() {}, drain() {}, closed: closed.resolve })
  raw.leave()
  await assert.rejects(pending, (error) => error instanceof DialFault)
  assert.ok((await closed.promise) instanceof Error)
  await isEmpty(gateway)
})

/** Writes to a client that does not read until this many bytes wait. */
function fill(socket: Socket, bytes: number): void {
  while (socket.writableLength < bytes) socket.write(Buffer.alloc(1024 * 1024))
}

/** The server's number of a channel that it opened. */
function theirChannel(raw: RawClient, nth = 0): number {
  // After the message type comes the channel's kind, with its length, and then the number.
  const opened = raw.answers(messages.channelOpen)[nth] ?? Buffer.alloc(0)
  return opened.readUInt32BE(5 + opened.readUInt32BE(1))
}
