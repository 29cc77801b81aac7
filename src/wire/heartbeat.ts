/** Signs of life: answering the peer's pings, sending our own, and noticing when a peer has gone silent. */
import { randomBytes } from 'node:crypto'
import type { Mux } from './mux.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { WireError } from './wire-error.ts'
import type { StreamSink, WireStream } from './wire-stream.ts'

const PING_BYTES = 4

/** A session without a sign of life ends after this at the latest, in milliseconds. */
export const LONGEST_SILENCE_MS = 60_000

/** What agents announce when they announce nothing, in milliseconds. */
export const DEFAULT_INTERVAL_MS = 10_000
export const DEFAULT_TOLERANCE_MS = 15_000

/** A round trip time is forgotten this much with every slower one: the least of late counts, as queues only add to it. */
const FORGETTING = 1.25

/** Sends back every ping; each in one frame, since some agents read an answer in one go. */
export function answerPings(stream: WireStream): void {
  let rest = Buffer.alloc(0)
  stream.attach({
    data(chunk) {
      const all = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
      const whole = all.length - (all.length % PING_BYTES)
      rest = Buffer.from(all.subarray(whole))
      if (whole > 0 && !stream.write(all.subarray(0, whole))) stream.pause()
    },
    end: () => stream.end(),
    drain: () => stream.resume(),
    closed() {},
  })
}

export interface HeartbeatOptions {
  readonly intervalMs?: number
  readonly toleranceMs?: number
  /** No answer came in time, or a wrong one. */
  readonly onDead: (error: WireError) => void
  readonly random?: (bytes: number) => Buffer
  readonly now?: () => number
}

/** Opens a heartbeat and pings at once, then every interval; tells the session its round trip time. */
export class Heartbeat {
  readonly #mux: Mux
  readonly #options: Required<HeartbeatOptions>
  readonly #stream: WireStream | undefined
  #timer: NodeJS.Timeout | undefined
  #sentAt = 0
  #ping: Buffer = Buffer.alloc(0)
  #answer: Buffer = Buffer.alloc(0)

  constructor(mux: Mux, options: HeartbeatOptions) {
    const defaults = { intervalMs: DEFAULT_INTERVAL_MS, toleranceMs: DEFAULT_TOLERANCE_MS, random: randomBytes }
    this.#mux = mux
    this.#options = { ...defaults, now: () => performance.now(), ...options }
    const stream = mux.open(typeHead(streamTypes.heartbeat))
    if (stream instanceof WireError) return
    this.#stream = stream
    stream.attach(this.#sink())
    this.#send()
  }

  /** No more pings. The stream stays as it is: some agents spin on the end of a heartbeat. */
  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#ping = Buffer.alloc(0)
  }

  #send(): void {
    this.#ping = this.#options.random(PING_BYTES)
    this.#answer = Buffer.alloc(0)
    this.#sentAt = this.#options.now()
    this.#stream?.write(this.#ping)
    this.#after(this.#options.intervalMs + this.#options.toleranceMs, () => this.#die('no answer to a ping in time'))
  }

  #sink(): StreamSink {
    return {
      data: (chunk) => {
        if (this.#ping.length === 0) return
        this.#answer = Buffer.concat([this.#answer, chunk.subarray(0, PING_BYTES)])
        if (this.#answer.length < PING_BYTES) return
        if (!this.#answer.equals(this.#ping)) return this.#die('a wrong answer to a ping')
        this.#measure()
        this.#ping = Buffer.alloc(0)
        this.#after(this.#options.intervalMs, () => this.#send())
      },
      end: () => this.stop(),
      drain() {},
      closed: () => this.stop(),
    }
  }

  #measure(): void {
    const sample = this.#options.now() - this.#sentAt
    this.#mux.roundTripMs = Math.min(sample, (this.#mux.roundTripMs ?? sample) * FORGETTING)
  }

  #die(what: string): void {
    this.stop()
    this.#options.onDead(new WireError('dead_peer', 'peer', `the peer gave ${what}`))
  }

  #after(ms: number, run: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(run, ms)
    this.#timer.unref()
  }
}

/** D47: calls `onDead` once when nothing at all came for `limitMs`; gives back how to stop watching. */
export function watchSilence(mux: Mux, { limitMs, onDead }: { limitMs: number; onDead: (error: WireError) => void }) {
  const limit = Math.min(limitMs, LONGEST_SILENCE_MS)
  let timer: NodeJS.Timeout | undefined
  // One timer that looks back, not one for each chunk.
  const look = (): void => {
    if (mux.isClosed) return
    const left = limit - mux.silenceMs
    if (left > 0) timer = setTimeout(look, Math.ceil(left)).unref()
    else onDead(new WireError('dead_peer', 'peer', `nothing came from the peer for ${limit} ms`))
  }
  timer = setTimeout(look, limit).unref()
  return (): void => clearTimeout(timer)
}
