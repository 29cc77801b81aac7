/** One session: many streams over one transport, for either role. */

import { FIN, FrameDecoder, type FrameSink, SYN } from './frame.ts'
import { type PeerTraits, serverTraits, unknownAgent } from './mux-peer.ts'
import { MuxOutbox } from './outbox.ts'
import type { Growth } from './receive-window.ts'
import { MuxStream, type StreamOwner } from './stream.ts'
import type { Transport } from './transport.ts'
import {
  AGENT_OPENED_STREAMS,
  SERVER_OPENED_STREAMS,
  SESSION_GROWTH_BYTES,
  STREAM_ID_LIMIT,
  WINDOW_BYTES,
} from './wire-bounds.ts'
import { type WireCode, WireError, wireCodeOf, wireCodes } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

export interface MuxOptions {
  readonly role: 'server' | 'agent'
  readonly transport: Transport
  /** The peer opened a stream of the type `type`. Attach a sink, or refuse with `reset`. */
  readonly onStream: (stream: WireStream, type: number) => void
  /** The session ended. Called exactly once; without an error when either side intended it. */
  readonly onClosed: (error: WireError | undefined) => void
  /** Streams that the peer may have open at once. */
  readonly maxAccepted?: number
  /** Resets that may wait until the peer reads; one more ends the session. */
  readonly maxPendingResets?: number
  /** How much the peer may send before `adapt` is called, in bytes. */
  readonly maxUntrustedBytes?: number
  /** Runs a function at the end of this turn of the event loop, so that one write carries everything from the turn. */
  readonly schedule?: (run: () => void) => void
  readonly now?: () => number
}

/** Written by hand: we know of no JavaScript library for the protocol of the agents we serve. */
export class Mux {
  readonly #options: MuxOptions
  readonly #outbox: MuxOutbox
  readonly #decoder: FrameDecoder
  readonly #streams = new Map<number, MuxStream>()
  readonly #owner: StreamOwner
  readonly #growth: Growth
  readonly #maxAccepted: number
  #traits: PeerTraits
  /** The stream that gets the body of the current DATA frame. */
  #target: MuxStream | undefined
  #nextId: number
  #lastAcceptedId = 0
  #accepted = 0
  #bytesIn = 0
  #heardAt: number
  #untrustedBytes: number
  #isClosed = false

  constructor(options: MuxOptions) {
    const { role, transport, schedule = setImmediate, maxUntrustedBytes = Number.POSITIVE_INFINITY } = options
    const isServer = role === 'server'
    this.#options = options
    this.#maxAccepted = options.maxAccepted ?? (isServer ? AGENT_OPENED_STREAMS : SERVER_OPENED_STREAMS)
    this.#untrustedBytes = maxUntrustedBytes
    this.#traits = isServer ? unknownAgent : serverTraits()
    this.#nextId = isServer ? 2 : 3 // id 1 is never used: both reference implementations increment before they open
    this.#outbox = new MuxOutbox(transport, schedule, options.maxPendingResets)
    this.#growth = {
      streamBytes: WINDOW_BYTES,
      spareBytes: SESSION_GROWTH_BYTES,
      roundTripMs: undefined,
      now: options.now ?? (() => performance.now()),
    }
    this.#heardAt = this.#growth.now()
    this.#owner = {
      growth: this.#growth,
      outbox: this.#outbox,
      sendReset: (id, code, { withFin }) => this.#sendReset(id, code, withFin && this.#traits.needsFinBeforeReset),
      forget: (stream) => this.#forget(stream),
    }
    this.#decoder = new FrameDecoder(this.#frameSink())
    transport.open({
      data: (chunk) => this.#receive(chunk),
      drain: () => this.#outbox.drained(),
      closed: (cause) => this.#over(new WireError('peer_eof', 'connection', 'the connection ended', { cause })),
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Open streams, from both sides. */
  get size(): number {
    return this.#streams.size
  }

  /** Open streams that we opened. */
  get opened(): number {
    return this.#streams.size - this.#accepted
  }

  /** Open streams that the peer opened. */
  get accepted(): number {
    return this.#accepted
  }

  get bytesIn(): number {
    return this.#bytesIn
  }

  get bytesOut(): number {
    return this.#outbox.bytesOut
  }

  /** Time since something last arrived, in milliseconds. */
  get silenceMs(): number {
    return this.#growth.now() - this.#heardAt
  }

  get roundTripMs(): number | undefined {
    return this.#growth.roundTripMs
  }

  /** The round trip time of the last heartbeat; windows grow by it. */
  set roundTripMs(value: number | undefined) {
    this.#growth.roundTripMs = value
  }

  /** Adapts to the peer, which is authenticated and trusted from here on. */
  adapt(traits: PeerTraits): void {
    this.#traits = traits
    this.#growth.streamBytes = traits.windowBytes
    this.#untrustedBytes = Number.POSITIVE_INFINITY
  }

  /**
   * Opens a stream that begins with `first`: the number of its type and its head. A head of up to 16 KiB is sent in one
   * frame: some agents stop serving the whole session while a head is incomplete.
   */
  open(first: Buffer): WireStream | WireError {
    if (this.#isClosed) return new WireError('session_closed', 'us', 'the session is closed')
    if (this.#streams.size >= this.#traits.maxStreams) {
      return new WireError('too_many_streams', 'us', `the session has ${this.#streams.size} streams open`)
    }
    if (this.#nextId >= STREAM_ID_LIMIT) {
      this.close('streams_exhausted')
      return new WireError('streams_exhausted', 'us', 'the session has used up its stream ids')
    }
    const stream = new MuxStream(this.#nextId, this.#owner, { isOurs: true })
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    stream.write(first)
    return stream
  }

  /** Ends the session: sends one more batch with a GOAWAY and closes, since agents lose count after a GOAWAY. */
  close(code: WireCode = 'no_error', text = ''): void {
    if (this.#isClosed) return
    this.#outbox.close(this.#lastAcceptedId, code, text)
    this.#over(undefined)
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return
    this.#bytesIn += chunk.length
    this.#heardAt = this.#growth.now()
    if (this.#bytesIn > this.#untrustedBytes) {
      this.#fail(new WireError('enhance_your_calm', 'peer', 'the peer sent too much before it was authenticated'))
      return
    }
    try {
      this.#decoder.push(chunk)
    } catch (cause) {
      this.#fail(new WireError('internal_error', 'us', 'the handler of a session failed', { cause }))
    }
    if (this.#traits.needsKick && !this.#isClosed) this.#outbox.kick()
  }

  #frameSink(): FrameSink {
    return {
      dataBegins: (id, flags, length) => {
        const stream = flags & SYN ? this.#accept(id) : this.#find(id, flags, length)
        this.#target = stream
        if (stream?.receive(length) === false) {
          stream.violate('flow_control_error', 'the peer sent more than the window of the stream')
        }
      },
      dataPiece: (piece) => {
        const stream = this.#target
        if (!stream) return
        stream.accept(piece)
        if (!stream.isTyped) this.#readType(stream)
      },
      dataEnds: (flags) => {
        const stream = this.#target
        this.#target = undefined
        if (!stream || !(flags & FIN)) return
        if (!stream.isTyped) stream.violate('protocol_error', 'the peer ended a stream before its type')
        else stream.acceptEnd()
      },
      reset: (id, code) => {
        const name = wireCodeOf(code)
        this.#streams.get(id)?.lose(new WireError(name, 'peer', `the peer reset the stream: ${name}`))
      },
      credit: (id, increment) => this.#streams.get(id)?.acceptCredit(increment),
      goAway: (_, code, text) => {
        const name = wireCodeOf(code)
        this.#options.transport.end()
        this.#over(
          name === 'no_error' ? undefined : new WireError(name, 'peer', `the peer went away: ${name}: ${text}`),
        )
      },
      broken: (error) => this.#fail(error),
    }
  }

  #accept(id: number): MuxStream | undefined {
    const isTheirs = id % 2 === (this.#options.role === 'server' ? 1 : 0)
    if (!isTheirs || this.#streams.has(id)) {
      this.#fail(new WireError('protocol_error', 'peer', 'the peer opened a stream with an id that is not free to it'))
      return undefined
    }
    if (this.#accepted >= this.#maxAccepted) {
      this.#sendReset(id, 'accept_queue_full', this.#traits.needsFinBeforeReset)
      return undefined
    }
    this.#accepted++
    this.#lastAcceptedId = Math.max(this.#lastAcceptedId, id)
    const stream = new MuxStream(id, this.#owner, { isOurs: false })
    this.#streams.set(id, stream)
    return stream
  }

  #find(id: number, flags: number, length: number): MuxStream | undefined {
    const stream = this.#streams.get(id)
    if (stream && !stream.isEndReceived) return stream
    // Agents repeat the FIN of a stream, even of one that is gone here.
    if (length === 0 && (stream || flags & FIN)) return undefined
    if (stream) stream.violate('stream_closed', 'the peer sent on a stream that it had ended')
    else this.#sendReset(id, 'stream_closed', false)
    return undefined
  }

  #readType(stream: MuxStream): void {
    const type = stream.take(4)
    if (!type) return
    stream.isTyped = true
    this.#options.onStream(stream, type.readUInt32BE(0))
  }

  #sendReset(id: number, code: WireCode, withFin: boolean): void {
    if (this.#isClosed || this.#outbox.addReset({ id, code, withFin })) return
    this.#fail(new WireError('enhance_your_calm', 'peer', 'the peer sends much that it may not, and does not read'))
  }

  #forget(stream: MuxStream): void {
    if (!this.#streams.delete(stream.id)) return
    if (!stream.isOurs) this.#accepted--
    if (this.#target === stream) this.#target = undefined
    this.#outbox.forget(stream)
  }

  #fail(error: WireError): void {
    if (this.#isClosed) return
    const code = Object.hasOwn(wireCodes, error.code) ? (error.code as WireCode) : 'internal_error' // just looked up
    this.#outbox.close(this.#lastAcceptedId, code, error.message)
    this.#over(error)
  }

  #over(error: WireError | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#decoder.stop()
    this.#outbox.stop()
    const reason = error ?? new WireError('session_closed', 'connection', 'the session ended')
    for (const stream of [...this.#streams.values()]) stream.lose(reason)
    this.#options.onClosed(error)
  }
}
