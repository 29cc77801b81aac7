/** Heartbeats: answers the peer's pings, sends our own, and notices when a peer is silent. */
import { drawBytes } from '../../lib/secrets/draw-bytes.ts'
import type { Mux } from './mux.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { WireError } from './wire-error.ts'
import type { StreamSink, WireStream } from './wire-stream.ts'

const PING_BYTES = 4

/** Longest silence before a session ends, in milliseconds. */
export const LONGEST_SILENCE_MS = 60_000

/** Defaults for agents that announce nothing, in milliseconds. */
export const DEFAULT_INTERVAL_MS = 10_000
export const DEFAULT_TOLERANCE_MS = 15_000

/** How much each slower round trip moves the estimate: the recent minimum counts, since queues only add to it. */
const FORGETTING = 1.25

/** The last part of every wait, in milliseconds; it starts only when the event loop is known to run. */
const LAST_PART_MS = 2000

/** A check for a sign of life waits at least this many round trips. */
const ROUND_TRIPS = 4

/** The rate of a slow link, in bytes per millisecond: data queued before a ping gets time at this rate. */
const SLOW_LINK_RATE = 64

/** Longest wait for an answer, however slow the link, in milliseconds. */
const LONGEST_CHECK_MS = 10_000

/** Answers every ping, each in one frame, since some agents read an answer in a single read. */
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

interface HeartbeatOptions {
  readonly intervalMs?: number
  readonly toleranceMs?: number
  /** Called when there was no answer in time, or a wrong one. */
  readonly onDead: (error: WireError) => void
  readonly random?: (bytes: number) => Buffer
  readonly now?: () => number
}

/** Opens a heartbeat and pings at once, then every interval; sets the round trip time of the session. */
export class Heartbeat {
  readonly #mux: Mux
  readonly #options: Required<HeartbeatOptions>
  readonly #stream: WireStream | undefined
  /** Cancels the wait for the next ping or its answer; undefined when pings have stopped. */
  #cancel: (() => void) | undefined
  #sentAt = 0
  #ping: Buffer = Buffer.alloc(0)
  #answer: Buffer = Buffer.alloc(0)
  /** Bytes sent before the last ping, and before the last answered one. */
  #outBefore = 0
  #outProven = 0
  #check: Promise<boolean> | undefined
  #settle = (): void => {}

  constructor(mux: Mux, options: HeartbeatOptions) {
    const defaults = { intervalMs: DEFAULT_INTERVAL_MS, toleranceMs: DEFAULT_TOLERANCE_MS, random: drawBytes }
    this.#mux = mux
    this.#options = { ...defaults, now: () => performance.now(), ...options }
    const stream = mux.open(typeHead(streamTypes.heartbeat))
    if (stream instanceof WireError) return
    this.#stream = stream
    stream.attach(this.#sink())
    this.#send()
  }

  /**
   * Whether anything arrives from the peer within `ms`, or somewhat later on a slow link. Concurrent callers share one
   * ping. A peer that does not accept pings cannot be checked and counts as alive.
   */
  ask(ms: number): Promise<boolean> {
    this.#check ??= this.#ask(ms).finally(() => {
      this.#check = undefined
    })
    return this.#check
  }

  /** Stops pinging. The stream stays open: some agents spin when a heartbeat ends. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#ping = Buffer.alloc(0)
    this.#settle()
  }

  async #ask(ms: number): Promise<boolean> {
    if (!this.#cancel) return true
    const heard = this.#mux.bytesIn
    if (this.#ping.length === 0) this.#send()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#settle = resolve
    const cancel = afterReading(this.#patience(ms), resolve)
    await promise
    cancel()
    return this.#mux.bytesIn > heard
  }

  /** A peer behind a slow link must not seem dead because its ping waits behind visitors' data. */
  #patience(ms: number): number {
    const least = Math.max(ms, ROUND_TRIPS * (this.#mux.roundTripMs ?? 0))
    return Math.min(least + (this.#outBefore - this.#outProven) / SLOW_LINK_RATE, LONGEST_CHECK_MS)
  }

  #send(): void {
    this.#ping = this.#options.random(PING_BYTES)
    this.#answer = Buffer.alloc(0)
    this.#sentAt = this.#options.now()
    this.#outBefore = this.#mux.bytesOut
    this.#stream?.write(this.#ping)
    this.#cancel?.()
    const { intervalMs, toleranceMs } = this.#options
    this.#cancel = afterReading(intervalMs + toleranceMs, () => this.#die('no answer to a ping in time'))
  }

  #sink(): StreamSink {
    return {
      data: (chunk) => {
        if (this.#ping.length === 0) return
        this.#answer = Buffer.concat([this.#answer, chunk.subarray(0, PING_BYTES)])
        if (this.#answer.length < PING_BYTES) return
        if (!this.#answer.equals(this.#ping)) return this.#die('a wrong answer to a ping')
        this.#answered()
      },
      end: () => this.stop(),
      drain() {},
      closed: () => this.stop(),
    }
  }

  #answered(): void {
    const sample = this.#options.now() - this.#sentAt
    this.#mux.roundTripMs = Math.min(sample, (this.#mux.roundTripMs ?? sample) * FORGETTING)
    this.#outProven = this.#outBefore
    this.#ping = Buffer.alloc(0)
    this.#cancel?.()
    this.#cancel = wait(this.#options.intervalMs, () => this.#send())
    this.#settle()
  }

  #die(what: string): void {
    this.stop()
    this.#options.onDead(new WireError('dead_peer', 'peer', `the peer gave ${what}`))
  }
}

/** D47: calls `onDead` once when nothing arrived for `limitMs`; returns a function that stops watching. */
export function watchSilence(mux: Mux, { limitMs, onDead }: { limitMs: number; onDead: (error: WireError) => void }) {
  const limit = Math.min(limitMs, LONGEST_SILENCE_MS)
  const last = lastPart(limit)
  let cancel = (): void => {}
  // One timer checks how long the peer was silent; a timer for each chunk would cost more.
  const check = (): void => {
    if (mux.isClosed) return
    const left = limit - last - mux.silenceMs
    cancel = left > 0 ? wait(Math.ceil(left), check) : waitAndRead(last, judge(mux.bytesIn))
  }
  const judge = (heard: number) => (): void => {
    if (mux.isClosed || mux.bytesIn > heard) check()
    else onDead(new WireError('dead_peer', 'peer', `nothing came from the peer for ${limit} ms`))
  }
  check()
  return (): void => cancel()
}

/**
 * Calls `run` after `ms`, once everything received by then has been read; returns a function that cancels it. After the process
 * was stopped (a suspended machine, a long garbage collection) all timers are due at once, before any peer could answer. So the
 * last part of the wait starts only then.
 */
function afterReading(ms: number, run: () => void): () => void {
  const last = lastPart(ms)
  let cancel = wait(ms - last, () => {
    cancel = waitAndRead(last, run)
  })
  return () => cancel()
}

function lastPart(ms: number): number {
  return Math.min(LAST_PART_MS, ms / 2)
}

function wait(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref()
  return () => clearTimeout(timer)
}

/** Timers fire before sockets are read, and immediates after. */
function waitAndRead(ms: number, run: () => void): () => void {
  let cancel = wait(ms, () => {
    const turn = setImmediate(run)
    cancel = () => clearImmediate(turn)
  })
  return () => cancel()
}
