/**
 * For tests: two sessions driven by random steps, and a model that knows what each end must have received.
 *
 * The model is small: for each direction of each stream, how many bytes were written, whether it was ended, and whether
 * either end gave up the stream. Bytes depend on their position, so the loss, repetition or move of one is detected.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { peerTraits, serverTraits } from '../mux-peer.ts'
import { MuxStream } from '../stream.ts'
import { streamTypes, typeHead } from '../stream-types.ts'
import { WINDOW_BYTES } from '../wire-bounds.ts'
import type { WireError } from '../wire-error.ts'
import type { StreamSink } from '../wire-stream.ts'
import { Ends, type Side } from './test-link.ts'

const sides = ['server', 'agent'] as const
const PERIOD = 251
const PATTERN_BYTES = 1024 * 1024
const pattern = Buffer.from(Array.from({ length: PERIOD + PATTERN_BYTES }, (_, i) => i % PERIOD))

/** One end of a stream: what it wrote, and what it heard. */
class End implements StreamSink {
  readonly stream: MuxStream
  written = 0
  isEnded = false
  heard = 0
  ends = 0
  closes: (WireError | undefined)[] = []
  mayWrite = true
  /** Half of all ends take lent bytes. */
  readonly lent: ((chunk: Buffer) => void) | undefined

  constructor(stream: MuxStream) {
    this.stream = stream
    this.lent = stream.id % 4 < 2 ? (chunk) => this.data(chunk) : undefined
  }

  write(bytes: number): void {
    // Writers wait when asked to, so the unsent bytes are bounded.
    if (!this.mayWrite || this.isEnded || this.stream.isClosed) return
    const from = this.written % PERIOD
    this.written += bytes
    this.mayWrite = this.stream.write(pattern.subarray(from, from + bytes))
  }

  lend(bytes: number): void {
    if (!this.mayWrite || this.isEnded || this.stream.isClosed) return
    const from = this.written % PERIOD
    this.written += bytes
    const chunk = Buffer.from(pattern.subarray(from, from + bytes))
    this.mayWrite = this.stream.writeLent(chunk)
    chunk.fill(0xdb)
  }

  data(chunk: Buffer): void {
    assert.ok(this.ends === 0 && this.closes.length === 0, 'data came after the end')
    const from = this.heard % PERIOD
    assert.ok(chunk.equals(pattern.subarray(from, from + chunk.length)), `wrong bytes after ${this.heard}`)
    this.heard += chunk.length
  }

  end(): void {
    this.ends++
  }

  drain(): void {
    this.mayWrite = true
  }

  closed(error: WireError | undefined): void {
    this.closes.push(error)
  }
}

interface Step {
  readonly kind: 'open' | 'write' | 'lend' | 'end' | 'close' | 'reset' | 'pause' | 'resume' | 'deliver' | 'turn'
  readonly side: Side
  readonly stream: number
  readonly bytes: number
}

const sizes = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 20 }) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 70_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 200_000, max: 600_000 }) },
)

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    ...(
      [
        ['open', 2],
        ['write', 5],
        ['lend', 5],
        ['end', 1],
        ['close', 1],
        ['reset', 1],
        ['pause', 2],
        ['resume', 2],
        ['deliver', 8],
        ['turn', 6],
      ] as const
    ).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) })),
  ),
  side: fc.constantFrom(...sides),
  stream: fc.nat({ max: 5 }),
  bytes: sizes,
})

export const modelRun = fc.record({
  steps: fc.array(step, { minLength: 10, maxLength: 300, size: 'max' }),
  /** As between our own server and agent, which agree on windows that grow. */
  grows: fc.boolean(),
})

/** Runs the steps, checks after each, and then lets everything arrive. */
export function checkModel({ steps, grows }: { steps: readonly Step[]; grows: boolean }): void {
  const model = new Model(grows)
  for (const each of steps) {
    model.step(each)
    model.checkBounds()
  }
  model.rest()
}

class Model {
  readonly #ends: Ends
  /** By id, both ends of each stream; the far end is set once it knows of the stream. */
  readonly #streams = new Map<number, Partial<Record<Side, End>>>()
  readonly #abandoned = new Set<number>()
  readonly #largest: number

  constructor(grows: boolean) {
    const onStream = (side: Side) => (stream: unknown) => {
      assert.ok(stream instanceof MuxStream)
      const end = new End(stream)
      const ends = this.#streams.get(stream.id) ?? assert.fail('a stream that nobody opened')
      assert.equal(ends[side], undefined, 'a stream was announced twice')
      ends[side] = end
      stream.attach(end)
    }
    this.#ends = new Ends({ server: { onStream: onStream('server') }, agent: { onStream: onStream('agent') } })
    this.#largest = grows ? 4 * WINDOW_BYTES : WINDOW_BYTES
    const agreedWindow = grows ? this.#largest : 0
    this.#ends.server.adapt(peerTraits('postern/1', { agreedWindow }))
    this.#ends.agent.adapt(serverTraits({ agreedWindow }))
    for (const side of sides) this.#ends.mux(side).roundTripMs = 2
  }

  step({ kind, side, stream, bytes }: Step): void {
    this.#ends.timeMs += 0.5
    if (kind === 'open') this.#open(side)
    else if (kind === 'deliver') this.#ends.link.pipes[side].deliver(bytes)
    else if (kind === 'turn') this.#ends.turn(side)
    else this.#use([...this.#streams.values()].at(-1 - stream)?.[side], kind, bytes)
  }

  #open(side: Side): void {
    const stream = this.#ends.mux(side).open(typeHead(streamTypes.proxy))
    assert.ok(stream instanceof MuxStream)
    const end = new End(stream)
    this.#streams.set(stream.id, { [side]: end })
    stream.attach(end)
  }

  #use(end: End | undefined, kind: Step['kind'], bytes: number): void {
    if (!end) return
    if (kind === 'write') end.write(bytes)
    else if (kind === 'lend') end.lend(bytes)
    else if (kind === 'pause') end.stream.pause()
    else if (kind === 'resume') end.stream.resume()
    else if (kind === 'end') {
      end.isEnded = true
      end.stream.end()
    } else if (kind === 'close' || kind === 'reset') {
      if (!end.stream.isClosed) this.#abandoned.add(end.stream.id)
      end.isEnded = true
      end.stream[kind]()
    }
  }

  /** Checks what holds at every moment: no end sends or holds more than a window, or keeps bytes after its close. */
  checkBounds(): void {
    const held = { server: 0, agent: 0 }
    for (const [id, ends] of this.#streams) {
      for (const side of sides) {
        const end = ends[side]
        if (!end) continue
        const { window, unread, isClosed } = end.stream
        assert.ok(window.size <= this.#largest, `stream ${id} has a window of ${window.size}`)
        const sum = window.open + window.owed + unread
        assert.ok(isClosed || sum <= window.size, `stream ${id} may get more than its window`)
        assert.ok(end.ends <= 1 && end.closes.length <= 1)
        assert.equal(end.closes.length === 1, isClosed)
        assert.ok(end.heard <= (ends[other(side)]?.written ?? 0), `stream ${id} heard more than was written`)
        if (isClosed) assert.equal(unread + end.stream.unsent, 0, `stream ${id} keeps bytes after its close`)
        else held[side]++
      }
    }
    for (const side of sides) assert.ok(this.#ends.mux(side).size <= held[side] + this.#unannounced(side))
  }

  /** Delivers and reads everything; checks that every byte and every end has arrived. */
  rest(): void {
    for (let i = 0; i < 3; i++) {
      for (const ends of this.#streams.values()) for (const side of sides) ends[side]?.stream.resume()
      this.#ends.settle(50_000)
    }
    assert.deepEqual(this.#ends.closed, { server: [], agent: [] })
    for (const [id, ends] of this.#streams) if (!this.#abandoned.has(id)) this.#checkWhole(id, ends)
    for (const ends of this.#streams.values()) for (const side of sides) ends[side]?.stream.close()
    this.#ends.settle()
    this.checkBounds()
    for (const side of sides) assert.equal(this.#ends.mux(side).size, 0, `the ${side} keeps streams`)
    for (const ends of this.#streams.values()) {
      for (const side of sides) assert.equal(ends[side]?.closes.length ?? 1, 1, 'a stream was not closed')
    }
  }

  #checkWhole(id: number, ends: Partial<Record<Side, End>>): void {
    for (const side of sides) {
      const [from, to] = [ends[side], ends[other(side)]]
      assert.ok(from && to, `stream ${id} was not announced`)
      assert.equal(to.heard, from.written, `stream ${id} lost bytes`)
      assert.equal(to.ends, from.isEnded ? 1 : 0, `the end of stream ${id}`)
      assert.ok(from.mayWrite || from.isEnded, `a writer of stream ${id} was not told to go on`)
      const isOver = from.isEnded && to.isEnded
      assert.deepEqual(from.closes, isOver ? [undefined] : [])
    }
  }

  /** Streams that this side does not know of yet. */
  #unannounced(side: Side): number {
    return [...this.#streams.values()].filter((ends) => !ends[side]).length
  }
}

function other(side: Side): Side {
  return side === 'server' ? 'agent' : 'server'
}
