/**
 * Sends mutated SSH to a gateway: bytes before encryption starts, messages before the login, messages of a session with
 * terminals, forwards and visitors, and ciphertext. A connection may end, but no client gets in without a key, nothing
 * leaks, and clients that keep to the rules are served all the while.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { serving, TestClient, TestGateway } from '../../src/data-plane/ssh/testing/test-gateway.ts'
import { makeKey, message, messages, RawClient } from '../../src/data-plane/ssh/testing/test-raw.ts'
import { DialFault } from '../../src/model/dial.ts'
import { until } from '../support/until.ts'
import { Dice } from './smuggling-shapes.ts'
import { messageShape, mutate } from './ssh-message-shapes.ts'

const STAGES = ['bytes', 'login', 'session', 'ciphertext'] as const
export type Stage = (typeof STAGES)[number]

/** The share of mutations in each stage, in percent. */
const shares: Readonly<Record<Stage, number>> = { bytes: 30, login: 20, session: 45, ciphertext: 5 }

/** Concurrent connections. */
const AT_ONCE = 16

/** The most messages over one connection, if it lives that long. */
const MOST_MESSAGES = 40

/** How long to wait for an answer before leaving, in milliseconds: a mutation may have requested no answer. */
const ANSWER_MS = 2000

/** A key without a credential. */
const stranger = makeKey()

export class SshMessages {
  readonly tally: Record<Stage, number> & { connections: number } = {
    bytes: 0,
    login: 0,
    session: 0,
    ciphertext: 0,
    connections: 0,
  }
  readonly #gateway: TestGateway
  readonly #handshake: Buffer

  private constructor(gateway: TestGateway, handshake: Buffer) {
    this.#gateway = gateway
    this.#handshake = handshake
  }

  static async start(): Promise<SshMessages> {
    const limits = { refusalMs: 20, requestMs: 5000, dialMs: 1000, failuresPerMinute: 1e9, unprovenPerIp: 4096 }
    const gateway = await new TestGateway({ limits }).listen()
    return new SshMessages(gateway, await recordHandshake(gateway.port))
  }

  get sent(): number {
    return STAGES.reduce((sum, stage) => sum + this.tally[stage], 0)
  }

  /** Sends `count` mutations. Each connection has its own dice, so that it can be repeated. */
  async run(seed: number, count: number, onProgress: (sent: number) => void = () => {}): Promise<void> {
    let next = 0
    const lane = async (): Promise<void> => {
      while (this.sent < count) {
        const dice = new Dice(seed + next++ * 2_654_435_761)
        const stage = STAGES.find((each) => this.tally[each] * 100 < this.sent * shares[each]) ?? dice.pick(STAGES)
        const number = ++this.tally.connections
        await this.#connection(stage, dice, number)
        if (number % 1000 !== 0) continue
        onProgress(this.sent)
        await this.#serves(number)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  }

  async stop(): Promise<void> {
    const { online, listener, endpoints } = this.#gateway
    await until('all are gone', () => online.registry.liveSessions().length === 0, { limitMs: 60_000 })
    await until('none is on trial', () => listener.metrics.unproven === 0, { limitMs: 60_000 })
    const { sessions, tunnels, endpoints: open, connections } = online.load
    assert.deepEqual([sessions, tunnels, open, connections], [0, 0, 0, 0])
    assert.deepEqual(endpoints.addresses, [])
    await this.#serves(0)
    await this.#gateway.close()
  }

  #connection(stage: Stage, dice: Dice, number: number): Promise<void> {
    if (stage === 'bytes') return this.#sendBytes(dice)
    return stage === 'login' ? this.#sendLogins(dice) : this.#sendMessages(dice, stage, number)
  }

  async #sendBytes(dice: Dice): Promise<void> {
    const socket = connect(this.#gateway.port, '127.0.0.1').on('error', () => {})
    socket.resume()
    this.tally.bytes++
    socket.end(mutate(dice, this.#handshake))
    await once(socket, 'close')
  }

  async #sendLogins(dice: Dice): Promise<void> {
    const raw = await RawClient.atLogin(this.#gateway.port)
    const around = { sessionId: raw.sessionId, key: stranger, channels: [0, 1] }
    for (let i = 0; i < MOST_MESSAGES && !raw.isClosed; i++) {
      this.tally.login++
      raw.send(mutate(dice, messageShape(dice, around, 'login')))
      await turn()
    }
    assert.ok(raw.answers(messages.authSuccess).length === 0, 'a client was let in without a key')
    raw.leave()
    await raw.closed
  }

  async #sendMessages(dice: Dice, stage: 'session' | 'ciphertext', number: number): Promise<void> {
    const name = `c${number}.example.test`
    const raw = await RawClient.serving(this.#gateway, name)
    void this.#visit(name)
    await within(ANSWER_MS, () => raw.isClosed || raw.answers(messages.channelOpen).length > 0)
    const around = { sessionId: raw.sessionId, key: stranger, channels: [0, 1, 1, 2] }
    if (stage === 'ciphertext') this.#spoil(raw, dice)
    for (let i = 0; i < MOST_MESSAGES && !raw.isClosed; i++) {
      const shape = messageShape(dice, around, 'session')
      // Some are sent unchanged, or no connection would get far.
      if (stage === 'ciphertext' || dice.chance(20)) raw.send(shape)
      else {
        this.tally.session++
        raw.send(mutate(dice, shape))
      }
      await turn()
    }
    const known = raw.heard.length
    if (!raw.isClosed) raw.send(message(messages.globalRequest, 'keepalive@openssh.com', true))
    await within(ANSWER_MS, () => raw.isClosed || raw.heard.length > known)
    raw.leave()
    await raw.closed
  }

  /** Changes a byte of one of the next packets after encryption. */
  #spoil(raw: RawClient, dice: Dice): void {
    const socket = raw.ssh._sock
    const write = socket.write.bind(socket)
    let left = dice.below(20)
    const spoilt = (bytes: Buffer): boolean => {
      if (left-- === 0) {
        this.tally.ciphertext++
        bytes[dice.below(bytes.length)] = dice.below(256)
      }
      return write(bytes)
    }
    Object.assign(socket, { write: spoilt })
  }

  /** A visitor that sends something, and leaves when the client does. */
  async #visit(name: string): Promise<void> {
    const { registry } = this.#gateway.online
    const tunnels = registry.liveSessions().flatMap((session) => session.tunnels.values())
    const tunnel = tunnels.find(({ endpoint }) => endpoint?.open.url.endsWith(name))
    const visitor = { ip: '192.0.2.1', port: 1, proto: 'https', edge: 'none', passthroughTls: false } as const
    const stream = await registry.dial({ tunnelId: tunnel?.id ?? '', ...visitor })
    if (stream instanceof DialFault) return
    stream.attach({ data() {}, end: () => stream.end(), drain() {}, closed() {} })
    stream.write(Buffer.from('question'))
  }

  async #serves(number: number): Promise<void> {
    assert.deepEqual(
      this.#gateway.logged.filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    )
    this.#gateway.logged.length = 0
    const { client } = await serving(this.#gateway, { address: `s${number}.example.test` })
    await client.leave()
  }
}

/** Records what a client sends up to the first encrypted messages. */
async function recordHandshake(port: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  const recorder = createServer((socket) => {
    const onward = connect(port, '127.0.0.1').on('error', () => {})
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

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Waits until `isThere` or the limit, without failing. */
async function within(limitMs: number, isThere: () => boolean): Promise<void> {
  const last = performance.now() + limitMs
  while (!isThere() && performance.now() < last) await new Promise((resolve) => setTimeout(resolve, 2))
}
