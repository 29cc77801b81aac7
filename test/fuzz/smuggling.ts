/**
 * Sends shapes of HTTP/1.1 through an edge to a service that records every byte, and compares three readings of them:
 * that of a strict parser, that of the edge, by its answers, and that of the service.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import {
  optionsOf,
  parseRequests,
  parseResponses,
  type StrictField,
  type StrictRequest,
  type StrictResponse,
  valuesOf,
} from '../e2e/edges/strict-http.ts'
import { listener } from '../e2e/edges/upstreams.ts'
import { dialled, type EdgeEntry } from '../e2e/edges/visitor.ts'
import type { World } from '../e2e/edges/world.ts'
import { type FrameCase, sendFrames } from './smuggling-http2.ts'
import { addressed, type Shape } from './smuggling-shapes.ts'

export interface Tally {
  sent: number
  /** Requests that reached the service. */
  carried: number
  /** Shapes that the edge refused somewhere. */
  refused: number
  /** Shapes in which the edge waited for bytes that would not have helped. */
  waited: number
}

/** How many shapes are sent at once. */
const AT_ONCE = 24

/** How long an edge may be silent after an invalid request before the visitor gives up, in milliseconds. */
const PATIENCE_MS = 4000

/** An edge and its service, to which any number of shapes are sent. */
export class Smuggling {
  readonly tally: Tally = { sent: 0, carried: 0, refused: 0, waited: 0 }
  readonly #edgeEntry: EdgeEntry
  /** What reached the service, by the visitor's address that the edge reported. */
  readonly #reached = new Map<string, string[]>()
  /** Faults in what reached the service. */
  readonly #faults: string[] = []
  #session: ConnectionOptions = {}
  #visitors = 0

  private constructor(edgeEntry: EdgeEntry) {
    this.#edgeEntry = edgeEntry
  }

  static async start(world: World): Promise<Smuggling> {
    const { httpsPort: port, ca } = world.platform
    const name = world.name()
    const smuggling = new Smuggling({ name, port, ca })
    const service = await listener(world, (socket) => smuggling.#serve(socket))
    const backend = await world.toAddress(service)
    await world.httpsEdge({ names: [name], routes: [{ backend }] })
    const first = await dialled(smuggling.#edgeEntry)
    // A resumed session makes thousands of handshakes faster.
    const [session] = (await once(first, 'session')) as [Buffer]
    smuggling.#session = { session }
    first.destroy()
    return smuggling
  }

  /** Rejects with the first shape on which the three readings differ. */
  async run(shapes: Iterable<Shape>): Promise<void> {
    const iterator = shapes[Symbol.iterator]()
    const work = async (): Promise<void> => {
      for (let next = iterator.next(); !next.done; next = iterator.next()) await this.#try(next.value)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    assert.deepEqual(this.#faults, [], 'what reached the service is not what the edge sent')
  }

  /** The service: reads strictly, and answers each request with a digest of it. */
  #serve(socket: Socket): void {
    let bytes: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      const { messages, rest, reason, at } = parseRequests(bytes)
      bytes = bytes.subarray(at)
      for (const request of messages) {
        this.#reach(request)
        const body = request.method === 'HEAD' ? '' : 'answer'
        socket.write(`HTTP/1.1 200 OK\r\nX-Digest: ${digest(request)}\r\nContent-Length: 6\r\n\r\n${body}`)
      }
      if (rest === 'malformed') this.#faults.push(`${reason}: ${JSON.stringify(bytes.toString('latin1'))}`)
    })
    socket.on('end', () => socket.end())
  }

  #reach(request: StrictRequest): void {
    const [line = '', ...more] = valuesOf(request.fields, 'x-forwarded-for')
    const visitor = line.split(', ').at(-1) ?? ''
    const list = this.#reached.get(visitor)
    if (!list || more.length > 0) this.#faults.push(`a request of no visitor: ${JSON.stringify(request)}`)
    const forged = [...request.fields, ...request.trailers].filter(({ name }) => isForged(name))
    if (forged.length > 0) this.#faults.push(`a header that should end at the edge: ${JSON.stringify(forged)}`)
    list?.push(digest(request))
    this.tally.carried++
  }

  /** Sends an HTTP/2 request, which must reach the service unchanged or not at all. */
  async tryFrames(sent: FrameCase): Promise<void> {
    const { from } = this.#nextVisitor()
    const socket = await dialled(this.#edgeEntry, { version: '2', from })
    await sendFrames(socket, sent, this.#edgeEntry.name)
    const reached = this.#reached.get(from) ?? []
    this.#reached.delete(from)
    assert.deepEqual(this.#faults, [])
    if (sent.passes === 'whole') assert.equal(reached.length, 1)
    else assert.ok(reached.length <= (sent.passes === 'without' ? 1 : 0))
    const pseudo = new Map(sent.headers)
    const request = {
      method: pseudo.get(':method') ?? '',
      target: pseudo.get(':path') ?? '',
      fields: [{ name: 'host', value: this.#edgeEntry.name }],
      trailers: (sent.trailers ?? []).map(([name, value]) => ({ name, value })),
      body: Buffer.from((sent.data ?? []).join(''), 'latin1'),
    }
    for (const seen of reached) assert.equal(seen, digest(request), 'the service saw another request')
  }

  /** Gives each visitor its own address, which the edge reports to the service. */
  #nextVisitor(): { from: string; number: number } {
    const number = ++this.#visitors
    const from = `127.${1 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`
    this.#reached.set(from, [])
    return { from, number }
  }

  async #try(shape: Shape): Promise<void> {
    const { from, number } = this.#nextVisitor()
    const { bytes, cuts } = addressed(shape, this.#edgeEntry.name)
    const expected = expect(bytes)
    this.tally.sent++
    try {
      const visit = await this.#visit({ bytes, cuts }, from, expected)
      this.#judge(expected, visit, this.#reached.get(from) ?? [])
      assert.deepEqual(this.#faults, [])
    } catch (cause) {
      throw new Error(`shape ${number}: ${JSON.stringify(bytes.toString('latin1').slice(0, 2000))}`, { cause })
    } finally {
      this.#reached.delete(from)
    }
  }

  /** Sends a shape; returns all answers once the connection is over. */
  async #visit({ bytes, cuts }: Shape, from: string, expected: Expected): Promise<Visit> {
    const socket = await dialled(this.#edgeEntry, { from, tls: this.#session })
    socket.allowHalfOpen = true
    const methods = expected.requests.map(({ method }) => method)
    let received: Buffer = Buffer.alloc(0)
    let parsed = parseResponses(received, { methods })
    let hasWaited = false
    const finals = () => parsed.messages.filter(({ status }) => status >= 200 && status !== 101).length
    const onProgress = (): void => {
      // All complete requests are answered, and the edge rightly waits for more.
      if (!expected.isMalformed && finals() >= expected.requests.length && !socket.writableEnded) socket.end()
    }
    const patience = setTimeout(() => {
      hasWaited = true
      socket.end()
    }, PATIENCE_MS)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      parsed = parseResponses(received, { methods })
      onProgress()
    })
    const over = new Promise((resolve) => socket.once('close', resolve))
    socket.once('end', () => socket.end())
    let at = 0
    for (const cut of [...cuts, bytes.length]) {
      if (cut > at && socket.writable) socket.write(bytes.subarray(at, cut))
      at = Math.max(at, cut)
      if (cuts.length > 0) await new Promise((resolve) => setImmediate(resolve))
    }
    onProgress()
    await over
    clearTimeout(patience)
    parsed = parseResponses(received, { methods, isEnded: true })
    assert.notEqual(parsed.rest, 'malformed', `the edge sent invalid HTTP: ${parsed.reason}`)
    if (hasWaited) this.tally.waited++
    return { answers: parsed.messages.filter(({ status }) => status >= 200), hasWaited }
  }

  #judge({ requests, isMalformed }: Expected, { answers, hasWaited }: Visit, reached: readonly string[]): void {
    const carried: string[] = []
    for (const [i, answer] of answers.entries()) {
      const request = requests[i]
      const [seen] = valuesOf(answer.fields, 'x-digest')
      const [code] = valuesOf(answer.fields, 'postern-error-code')
      assert.ok((seen === undefined) !== (code === undefined), 'an answer is from the service or from the edge')
      if (seen !== undefined) {
        assert.ok(request, 'the service answered something other than a request')
        assert.equal(seen, digest(request), 'the service saw another request')
        carried.push(seen)
      } else {
        assert.ok(answer.status >= 400, 'an error has an error status')
        assert.ok(request || i === requests.length, 'there is one refusal, at the end')
      }
    }
    const last = answers.at(-1)
    const isError = last !== undefined && valuesOf(last.fields, 'postern-error-code').length > 0
    const isRefused = isError && valuesOf(last.fields, 'connection').includes('close')
    if (isRefused) this.tally.refused++
    // An error that was sent before the body was read is not followed by another about the body.
    if (isMalformed && !hasWaited) assert.ok(isError, 'an invalid request is refused, and the connection closed')
    // After a refusal nothing more is read; without one, every valid request is answered.
    const isAllAnswered = answers.length >= requests.length
    if (!isRefused && !hasWaited) assert.ok(isAllAnswered, `${answers.length} of ${requests.length} answered`)
    assert.deepEqual(reached, carried, 'what reached the service is what the edge answered with')
  }
}

interface Visit {
  readonly answers: readonly StrictResponse[]
  readonly hasWaited: boolean
}

interface Expected {
  readonly requests: readonly StrictRequest[]
  /** What follows the requests is neither a request nor the start of one. */
  readonly isMalformed: boolean
}

/** What a strict reader finds in `bytes`; it reads nothing after a request that says it is the last. */
function expect(bytes: Buffer): Expected {
  const { messages, rest } = parseRequests(bytes, { isFirstHop: true })
  const last = messages.findIndex(({ isLast }) => isLast)
  if (last >= 0) return { requests: messages.slice(0, last + 1), isMalformed: false }
  return { requests: messages, isMalformed: rest === 'malformed' }
}

const notForwarded = new Set([
  ...['connection', 'content-length', 'expect', 'host', 'http2-settings', 'keep-alive', 'proxy-authenticate'],
  ...['proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
])

/** The same for a request before and behind the edge: it leaves out what the edge adds and removes. */
function digest({ method, target, fields, trailers, body }: Omit<StrictRequest, 'isLast'>): string {
  const named = optionsOf(fields)
  const isKept = ({ name }: StrictField): boolean =>
    !(notForwarded.has(name) || named.includes(name) || isForged(name) || name.startsWith('x-forwarded-'))
  const [, path = target] = /^https?:\/\/[^/?]*(.*)$/is.exec(target) ?? []
  const lines = fields.filter(isKept).map(({ name, value }) => `${name}: ${value}`)
  const ends = trailers
    .filter((field) => isKept(field) && field.name.startsWith('x-'))
    .map(({ name, value }) => `${name}: ${value}`)
  const text = JSON.stringify([
    method,
    path.startsWith('?') || path === '' ? `/${path}` : path,
    valuesOf(fields, 'host'),
    lines,
    ends,
  ])
  return createHash('sha256').update(text).update(body).digest('hex')
}

/** Whether only the edge may send a field, or some servers would read it as one of those. */
function isForged(name: string): boolean {
  return name.includes('_') || /^postern\W/.test(name)
}
