/**
 * Sends hostile records to the TLS listeners of visitors and agents. Each connection must end in time. A certificate is
 * shown only for the one name that the hello requests, with all that its edge demands. What an edge passes through is
 * what the visitor sent, byte for byte.
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { authority } from '../e2e/edges/identities.ts'
import { listener } from '../e2e/edges/upstreams.ts'
import { World } from '../e2e/edges/world.ts'
import { until } from '../support/until.ts'
import { Dice } from './smuggling-shapes.ts'
import { helloShape, nameAsked } from './tls-hello-shapes.ts'

const OPEN = 'open.fuzz.test'
const MUTUAL = 'mutual.fuzz.test'
const STRICT = 'strict.fuzz.test'
const PASSED = 'passed.fuzz.test'
const NOBODY = 'nobody.fuzz.test'
const DOMAIN = 'tunnels.test'

const AT_ONCE = 32

/** How long one connection may take, in milliseconds: more than any timeout on the way, on a busy machine. */
const LIMIT_MS = 30_000

interface Answer {
  /** Names in the certificate; undefined when none was shown. */
  names: string | undefined
  isServerHello: boolean
  asksForCertificate: boolean
}

export interface TlsTally {
  sent: number
  /** How often each name got an answer. */
  readonly shown: Record<string, number>
  refused: number
}

export class TlsRecords {
  readonly tally: TlsTally = { sent: 0, shown: {}, refused: 0 }
  readonly #world: World
  readonly #agentPort: number
  readonly #passed: readonly Buffer[]
  /** What was sent for the edge that passes TLS through. */
  readonly #expected = new Set<string>()

  private constructor(world: World, passed: readonly Buffer[]) {
    this.#world = world
    this.#passed = passed
    this.#agentPort = Number(world.platform.agents.split(':').at(-1))
  }

  static async start(): Promise<TlsRecords> {
    const world = await World.start({ flags: { 'log-level': 'warn', domain: DOMAIN } })
    const service = await listener(world, (socket) => socket.once('data', () => socket.end('seen')))
    const { certificatePem } = await authority('fuzz')
    const { id } = await world.api.create('/certificate_authorities', { ca_pem: certificatePem })
    await world.httpsEdge({ names: [OPEN] })
    await world.httpsEdge({ names: [MUTUAL], modules: { mutual_tls: { certificate_authority_ids: [id] } } })
    await world.httpsEdge({ names: [STRICT], modules: { tls_termination: { min_version: '1.3' } } })
    await world.tlsEdge({ backend: await world.toAddress(service) }, [PASSED])
    return new TlsRecords(world, service.received)
  }

  async stop(): Promise<void> {
    await until('no connection is left', async () => {
      const text = await (await fetch(this.#world.platform.metricsUrl)).text()
      const open = [...text.matchAll(/^postern_connections_open\{door="(?:visitors|agents)"\} (\d+)$/gm)]
      return open.length === 2 && open.every(([, count]) => count === '0')
    })
    await this.#world.stop()
    const broken = this.#world.platform.log.filter((line) => /"level":"(error|fatal)"/.test(line))
    assert.deepEqual(broken, [])
    for (const bytes of this.#passed) {
      assert.ok(
        this.#expected.has(bytes.toString('hex')),
        `a service got bytes that were not for it: ${bytes.toString('hex')}`,
      )
    }
  }

  async run(seed: number, isOver: (sent: number) => boolean): Promise<void> {
    const dice = new Dice(seed)
    const all = [OPEN, MUTUAL, STRICT, PASSED, NOBODY]
    const lane = async (): Promise<void> => {
      while (!isOver(this.tally.sent)) {
        const isAgents = dice.chance(15)
        const bytes = helloShape(dice, { all })
        const cuts = dice.chance(4)
          ? Array.from({ length: Math.min(bytes.length, 600) }, (_, i) => i + 1)
          : Array.from({ length: dice.below(4) }, () => dice.below(bytes.length + 1)).sort((a, b) => a - b)
        this.tally.sent++
        await this.#check(bytes, cuts, isAgents)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  }

  async #check(bytes: Buffer, cuts: readonly number[], isAgents: boolean): Promise<void> {
    const name = nameAsked(bytes)
    const what = `${isAgents ? 'agents' : 'visitors'}, ${name ?? 'no name'}: ${bytes.toString('hex')} cut at ${cuts.join(' ')}`
    if (name === PASSED && !isAgents) this.#expected.add(bytes.toString('hex'))
    const answer = await this.#send(bytes, cuts, isAgents, what)
    if (isAgents) {
      if (answer.names !== undefined) assert.match(answer.names, /connect\.tunnels\.test/, what)
      return
    }
    if (!answer.isServerHello) {
      this.tally.refused++
      return
    }
    assert.ok(name !== undefined && name !== PASSED, `a hello without exactly one name was answered: ${what}`)
    const key = [OPEN, MUTUAL, STRICT].includes(name) ? name : NOBODY
    this.tally.shown[key] = (this.tally.shown[key] ?? 0) + 1
    if (answer.names === undefined) return
    assert.notEqual(name, STRICT, `TLS 1.2 was used for a name that requires 1.3: ${what}`)
    const shown = key === NOBODY ? `DNS:${DOMAIN}` : `DNS:${name}`
    assert.ok(answer.names.split(', ').includes(shown), `${answer.names} was shown: ${what}`)
    assert.equal(answer.asksForCertificate, name === MUTUAL, what)
  }

  async #send(bytes: Buffer, cuts: readonly number[], isAgents: boolean, what: string): Promise<Answer> {
    const port = isAgents ? this.#agentPort : this.#world.platform.httpsPort
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    socket.on('error', () => {})
    const overdue = setTimeout(() => socket.destroy(new Error('overdue')), LIMIT_MS)
    const heard = readFlight(socket)
    let at = 0
    for (const cut of [...cuts, bytes.length]) {
      if (socket.destroyed) break
      if (cut > at) socket.write(bytes.subarray(at, cut))
      at = Math.max(at, cut)
      if (cut < bytes.length) await new Promise((resolve) => setImmediate(resolve))
    }
    // Only a complete hello gets an answer worth waiting for.
    if (nameAsked(bytes) === undefined && !isAgents) socket.end()
    else setTimeout(() => socket.end(), 1000).unref()
    const answer = readAnswer(await heard)
    const isLate = socket.errored?.message === 'overdue'
    clearTimeout(overdue)
    socket.destroy()
    assert.ok(!isLate, `a connection was still open after ${LIMIT_MS} ms: ${what}`)
    return answer
  }
}

/** The server's first bytes, until it waits for an answer or closes. */
function readFlight(socket: Socket): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0)
  return new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      const { isLast } = messages(bytes)
      if (isLast) resolve(bytes)
    })
    socket.once('end', () => resolve(bytes))
    socket.once('close', () => resolve(bytes))
  })
}

const SERVER_HELLO = 2
const CERTIFICATE = 11
const CERTIFICATE_REQUEST = 13
const SERVER_HELLO_DONE = 14

/** The messages of unencrypted handshake records. */
function messages(bytes: Buffer): { all: Buffer[]; isLast: boolean } {
  const parts: Buffer[] = []
  let isLast = false
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt16BE(at + 3)
    if (end > bytes.length) break
    if (bytes[at] === 22) parts.push(bytes.subarray(at + 5, end))
    // An alert, or encrypted.
    else isLast = true
    at = end
  }
  const stream = Buffer.concat(parts)
  const all: Buffer[] = []
  for (let at = 0; at + 4 <= stream.length; ) {
    const end = at + 4 + stream.readUIntBE(at + 1, 3)
    if (end > stream.length) break
    all.push(stream.subarray(at, end))
    isLast ||= stream[at] === SERVER_HELLO_DONE
    at = end
  }
  return { all, isLast }
}

function readAnswer(bytes: Buffer): Answer {
  const { all } = messages(bytes)
  const find = (type: number): Buffer | undefined => all.find((message) => message[0] === type)
  const certificate = find(CERTIFICATE)
  // The message's head is followed by the length of the list and the length of its first certificate.
  const first = certificate?.subarray(10, 10 + certificate.readUIntBE(7, 3))
  return {
    names: first && new X509Certificate(first).subjectAltName,
    isServerHello: find(SERVER_HELLO) !== undefined,
    asksForCertificate: find(CERTIFICATE_REQUEST) !== undefined,
  }
}
