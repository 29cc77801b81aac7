/** Whether a client keeps its name when another asks for it, over a line whose speed and time the test sets. */
import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { dial, gatewayStarter, theSession } from './testing/test-gateway.ts'
import { message, messages, RawClient } from './testing/test-raw.ts'

const NAME = 'slow.example.test'

/** What the line carries to the client in a second. */
const BYTES_A_SECOND = 12_000

/** OpenSSH reports what it has read when this much is read. */
const REPORTED_BYTES = 128 * 1024

const start = gatewayStarter()
const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A line to the gateway: what the gateway sends waits in it until the test lets it pass. */
class Line {
  port = 0
  isOpen = true
  /** What the gateway has sent, and what the client was given of it. */
  taken = 0
  given = 0
  /** What the client has sent that went on to the gateway. */
  sent = 0
  #client: Socket | undefined
  #waiting = Buffer.alloc(0)

  async listen(port: number): Promise<this> {
    const server = createServer((client) => {
      const gateway = connect(port, '127.0.0.1')
      this.#client = client.on('error', () => {})
      client.on('data', (bytes) => {
        gateway.write(bytes)
        this.sent += bytes.length
      })
      gateway.on('error', () => {})
      gateway.on('data', (bytes) => {
        this.taken += bytes.length
        this.#waiting = Buffer.concat([this.#waiting, bytes])
        if (this.isOpen) this.pass(bytes.length)
      })
      gateway.on('close', () => client.destroy())
      client.on('close', () => gateway.destroy())
    })
    closing.push(() => server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (typeof address === 'object') this.port = address?.port ?? 0
    return this
  }

  pass(bytes: number): void {
    const passed = this.#waiting.subarray(0, bytes)
    this.#waiting = this.#waiting.subarray(bytes)
    this.given += passed.length
    this.#client?.write(passed)
  }
}

/** A client with a window of 2 MiB behind a line; a visitor uploads, so that this many bytes wait in the line. */
async function behindLine(t: TestContext, uploaded: number) {
  const sockets: Socket[] = []
  const gateway = await start({
    meet: (socket, peer, then) => {
      sockets.push(socket)
      then(peer)
    },
  })
  const line = await new Line().listen(gateway.port)
  const raw = await RawClient.serving({ port: line.port, credentials: gateway.credentials }, NAME)
  closing.push(() => raw.leave())
  const holder = theSession(gateway)
  const dialled = dial(gateway)
  await until(() => raw.answers(messages.channelOpen).length === 1)
  const opened = raw.answers(messages.channelOpen)[0] ?? Buffer.alloc(0)
  const channel = opened.readUInt32BE(5 + opened.readUInt32BE(1))
  raw.send(message(messages.channelOpened, channel, 7, 2 * 1024 * 1024, 32_768))
  const visitor = await dialled
  line.isOpen = false
  const before = line.taken
  visitor.attach({ data() {}, end() {}, drain() {}, closed() {} })
  visitor.write(Buffer.alloc(uploaded))
  await until(() => line.taken - before >= uploaded)
  const next = await gateway.client().login()
  closing.push(() => next.ssh._sock.destroy())
  await next.exec('http')
  const [socket] = sockets
  assert.ok(socket)
  const { bytesWritten } = socket
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked = next.forward(NAME, 443)
  let isOver = false
  void asked
    .catch(() => {})
    .then(() => {
      isOver = true
    })
  await ends(() => socket.bytesWritten > bytesWritten)
  /** A second of the line, after which everything that the client says to it has arrived. */
  let answered = raw.answers(messages.globalRequest).length
  let reported = 0
  const second = async (): Promise<void> => {
    line.pass(BYTES_A_SECOND)
    await ends(() => raw.ssh._sock.bytesRead === line.given)
    const pings = raw.answers(messages.globalRequest).length
    while (answered < pings) {
      answered++
      raw.send(message(messages.requestFailure))
    }
    const read = raw.answers(messages.channelData).reduce((sum, payload) => sum + payload.length, 0)
    if (read - reported >= REPORTED_BYTES) {
      raw.send(message(messages.windowAdjust, channel, read - reported))
      reported = read
    }
    await ends(() => socket.bytesRead === raw.ssh._sock.bytesWritten)
    t.mock.timers.tick(1000)
    await turn()
  }
  /** The client's answer arrives, and is not read yet when so much time has passed: the process stood still. */
  const answerUnread = async (ms: number): Promise<void> => {
    line.pass(BYTES_A_SECOND)
    await ends(() => raw.ssh._sock.bytesRead === line.given)
    const { bytesRead } = socket
    const { sent } = line
    raw.send(message(messages.requestFailure))
    await ends(() => line.sent > sent)
    assert.equal(socket.bytesRead, bytesRead, 'it was read already')
    t.mock.timers.tick(ms)
  }
  return { holder, asked, second, answerUnread, isOver: () => isOver, pass: (ms: number) => t.mock.timers.tick(ms) }
}

/** Waits by turns of the event loop, since the time stands still. */
async function ends(isTrue: () => boolean): Promise<void> {
  for (let turns = 0; !isTrue(); turns++) {
    assert.ok(turns < 500_000, 'the bytes did not arrive')
    await turn()
  }
}

for (const uploaded of [96_000, 1_000_000]) {
  test(`a client keeps its name though ${uploaded} bytes of a visitor are on its slow line`, async (t) => {
    const { holder, asked, second, isOver } = await behindLine(t, uploaded)
    for (let seconds = 0; !isOver() && !holder.isEnded && seconds < 60; seconds++) await second()
    await assert.rejects(asked)
    assert.equal(holder.isEnded, false)
  })
}

test('a client keeps its name though the process stood still when its answer came', async (t) => {
  const { holder, asked, answerUnread, isOver, pass } = await behindLine(t, 0)
  await answerUnread(30_000)
  for (let seconds = 0; !isOver() && !holder.isEnded && seconds < 100; seconds++) {
    pass(1000)
    await turn()
  }
  await assert.rejects(asked)
  assert.equal(holder.isEnded, false)
})

for (const [uploaded, most] of [
  [0, 5],
  [96_000, 16],
  [1_000_000, 22],
] as const) {
  test(`a client that vanished with ${uploaded} bytes on its line loses its name within ${most} seconds`, async (t) => {
    const { holder, asked, pass } = await behindLine(t, uploaded)
    let seconds = 0
    while (!holder.isEnded && seconds < 100) {
      pass(1000)
      seconds++
      await turn()
    }
    assert.ok(seconds <= most, `${seconds} seconds`)
    assert.equal(await asked, 443)
  })
}
