/** One session to another plane, on which tunnels there are dialled. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { DialFault, type DialReason } from '../../model/dial.ts'
import { type Channel, streamChannel } from '../calls/plane-channel.ts'
import type { Mux } from '../wire/mux.ts'
import { typeHead } from '../wire/stream-types.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { parseFault, readPart, WORKER_CALLS_TYPE } from './dial-header.ts'
import type { LinkKeepalive } from './link-keepalive.ts'
import { callNode } from './node-calls.ts'

interface RelayLinkOptions {
  readonly session: Mux
  /** What to call the other end in messages, such as `the plane w2`. */
  readonly name: string
  /** The reason of a dial that was not answered because the session broke. */
  readonly lostReason: DialReason
  /** Shows whether the session lives, for a plane of another node. */
  readonly pulse?: LinkKeepalive
  /** Instead of `SESSION_STREAMS`, for tests. */
  readonly sessionStreams?: number | undefined
}

/** Most streams opened in the life of a session before another takes over: a quarter of its stream ids. */
const SESSION_STREAMS = 2 ** 28

export class RelayLink {
  readonly session: Mux
  readonly #options: RelayLinkOptions
  #opened = 0
  #calls: WireStream | undefined

  constructor(options: RelayLinkOptions) {
    this.session = options.session
    this.#options = options
  }

  /** Whether another session should take over. */
  get isUsedUp(): boolean {
    return this.#opened >= (this.#options.sessionStreams ?? SESSION_STREAMS)
  }

  /** Whether visitors have used it. */
  get wasDialled(): boolean {
    return this.#opened > 0
  }

  /** Open streams of visitors. */
  get streams(): number {
    return this.#options.pulse?.streams ?? this.session.size - (this.#calls?.isClosed === false ? 1 : 0)
  }

  /** Opens the one stream for calls, which does not keep a retired session open. */
  calls(): Channel | undefined {
    const stream = this.session.open(typeHead(WORKER_CALLS_TYPE))
    if (stream instanceof WireError) return undefined
    this.#calls = stream
    return streamChannel(stream)
  }

  /** Opens a stream that begins with `head`, a preamble; resolves with it once the tunnel is reached. Never rejects. */
  dial(head: Buffer, { withinMs }: { readonly withinMs: number }): Promise<ByteStream | DialFault> {
    const { name, lostReason, pulse } = this.#options
    pulse?.use()
    const stream = this.session.open(head)
    if (stream instanceof WireError) {
      const reason = stream.code === 'too_many_streams' ? 'busy' : lostReason
      return Promise.resolve(new DialFault(reason, `no stream to ${name}`, { cause: stream }))
    }
    this.#opened++
    return this.#answer(stream, withinMs)
  }

  /** Calls the other node; see `callNode`. */
  call(value: unknown, withinMs: number): Promise<unknown> {
    this.#options.pulse?.use()
    return callNode(this.session, value, withinMs)
  }

  #answer(stream: WireStream, withinMs: number): Promise<ByteStream | DialFault> {
    const { name, lostReason } = this.#options
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve(new DialFault('timeout', `${name} did not answer in ${withinMs} ms`))
        stream.reset()
      }, withinMs)
      readPart(stream, (bytes) => {
        clearTimeout(timer)
        if (bytes?.length === 0) {
          resolve(stream)
          return
        }
        const reason = this.session.isClosed ? lostReason : 'offline'
        resolve((bytes && parseFault(bytes)) ?? new DialFault(reason, `${name} cannot be reached`))
        if (bytes) stream.close()
        else stream.reset()
      })
    })
  }
}
