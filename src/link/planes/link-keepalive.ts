/** Finds out whether the node at the other end of a session is alive. */

import { answerPings } from '../wire/heartbeat.ts'
import type { Mux } from '../wire/mux.ts'
import { streamTypes, typeHead } from '../wire/stream-types.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'

interface LinkPulseOptions {
  /** How long the session may be without streams, in milliseconds. */
  readonly idleMs: number
  readonly onIdle: () => void
  /** `wasInUse`: the session fell silent while streams were open. Otherwise it may have died long ago, and the node may live. */
  readonly onDead: (how: { readonly wasInUse: boolean }) => void
  /** Instead of `LOOK_MS`, for tests. */
  readonly lookMs?: number | undefined
}

/** How often to look whether anything has arrived, in milliseconds. */
const LOOK_MS = 750

/**
 * Looks in a row without a byte after which the session is dead, so within 3 seconds (D57). Looks are counted, not time: when
 * this process itself was frozen, there is one look and then time to read what has arrived.
 */
const SILENT_LOOKS = 3

/** Looks without a byte after which a session counts as unproven when it is used again. */
const UNPROVEN_LOOKS = 4

/** How long an unproven session has to show that it lives, in looks: less than a dial has, so that the dial can try again. */
const PROOF_LOOKS = 4 / 3

/** How much each slower round trip moves the estimate, as for agents: the recent minimum counts. */
const FORGETTING = 1.25

const ping = Buffer.from('ping')

/**
 * Both ends ping while streams are open, and a session on which nothing arrives then is dead: a cut cable or a frozen process
 * ends no connection by itself. An idle session is not pinged, and is closed when it has been idle for long.
 */
export class LinkKeepalive {
  readonly #session: Mux
  readonly #options: LinkPulseOptions
  readonly #lookMs: number
  readonly #timer: NodeJS.Timeout
  #ours: WireStream | undefined
  #theirs: WireStream | undefined
  /** When the unanswered ping was sent. */
  #sentAt: number | undefined
  #answered = 0
  #heard = 0
  #silentLooks = 0
  #idleLooks = 0
  #proof: NodeJS.Timeout | undefined

  constructor(session: Mux, options: LinkPulseOptions) {
    this.#session = session
    this.#options = options
    this.#lookMs = options.lookMs ?? LOOK_MS
    this.#timer = setInterval(() => this.#look(), this.#lookMs).unref()
    const stream = session.open(typeHead(streamTypes.heartbeat))
    // This fails only when the session is closed already.
    if (stream instanceof WireError) return
    this.#ours = stream
    stream.attach({
      data: (chunk) => this.#pong(chunk.length),
      end: () => this.#lost(),
      drain() {},
      closed: () => this.#lost(),
    })
    // At once, since the growth of windows depends on the round trip time.
    this.#ping()
  }

  /** Open streams other than for pings. */
  get streams(): number {
    return this.#session.size - (this.#ours?.isClosed === false ? 1 : 0) - (this.#theirs?.isClosed === false ? 1 : 0)
  }

  /** Answers the pings of the other end, on its one stream. */
  answer(stream: WireStream): void {
    if (this.#theirs) stream.reset('protocol_error')
    else {
      this.#theirs = stream
      answerPings(stream)
    }
  }

  /**
   * Call this when a stream is opened. A session that was silent for long must soon show that it lives: it may have died
   * unnoticed, and a dial should not wait for it.
   */
  use(): void {
    if (this.#proof || this.#session.silenceMs < UNPROVEN_LOOKS * this.#lookMs) return
    this.#ping()
    const heard = this.#session.bytesIn
    // Timers fire before sockets are read, and immediates after.
    const judge = (): void => {
      this.#proof = undefined
      if (!this.#session.isClosed && this.#session.bytesIn === heard) this.#options.onDead({ wasInUse: false })
    }
    this.#proof = setTimeout(() => setImmediate(judge), this.#lookMs * PROOF_LOOKS).unref()
  }

  /** Call this when the session is closed. */
  stop(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#proof)
  }

  #look(): void {
    const isSilent = this.#session.bytesIn === this.#heard
    this.#heard = this.#session.bytesIn
    if (this.streams > 0) this.#lookAtUsed(isSilent)
    else this.#lookAtIdle(isSilent)
  }

  #lookAtUsed(isSilent: boolean): void {
    this.#idleLooks = 0
    // The first look after idle time only sends a ping; the next ones count a missing answer.
    this.#silentLooks = isSilent && this.#sentAt !== undefined ? this.#silentLooks + 1 : 0
    if (this.#silentLooks >= SILENT_LOOKS) this.#options.onDead({ wasInUse: true })
    else this.#ping()
  }

  #lookAtIdle(isSilent: boolean): void {
    this.#silentLooks = 0
    this.#idleLooks = isSilent ? this.#idleLooks + 1 : 0
    if (this.#idleLooks * this.#lookMs >= this.#options.idleMs) this.#options.onIdle()
  }

  #ping(): void {
    if (this.#sentAt !== undefined) return
    this.#sentAt = performance.now()
    this.#ours?.write(ping)
  }

  #pong(bytes: number): void {
    this.#answered += bytes
    if (this.#answered < ping.length || this.#sentAt === undefined) return
    this.#answered = 0
    const sample = performance.now() - this.#sentAt
    this.#sentAt = undefined
    this.#session.roundTripMs = Math.min(sample, (this.#session.roundTripMs ?? sample) * FORGETTING)
  }

  /** The other end closed the stream of our pings, so nothing can show that it lives. */
  #lost(): void {
    if (!this.#session.isClosed) this.#options.onDead({ wasInUse: false })
  }
}
