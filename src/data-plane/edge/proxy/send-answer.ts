/** An answer on its way to the visitor: what modules may still change, and its body at the visitor's pace. */
import type { Transform } from 'node:stream'
import { keepBytes } from '../../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Incoming } from '../../../modules/phases.ts'
import type { BodyReader, BodySink, BodyWriter, ResponseHead } from '../../requests/http-exchange.ts'
import { stripTrailers } from './proxied-headers.ts'

/** The answer as the response phases see it. */
export class IncomingAnswer implements Incoming {
  status: number
  readonly headers: HeaderList
  readonly isFromUpstream: boolean
  readonly hasBody: boolean
  readonly bodyLength: number | undefined
  /** In the order in which they are applied to the body. */
  encoders: Transform[] | undefined

  constructor(answer: Omit<Incoming, 'encodeBody'>) {
    this.status = answer.status
    this.headers = answer.headers
    this.isFromUpstream = answer.isFromUpstream
    this.hasBody = answer.hasBody
    this.bodyLength = answer.bodyLength
  }

  encodeBody(encode: Transform): void {
    this.encoders ??= []
    this.encoders.push(encode)
  }
}

/** The owner of an answer, which hears what happens to it. */
export interface AnswerOwner {
  /** The id of the request in the log. */
  requestId(): string
  /** The head of the answer goes to the visitor. */
  began(head: ResponseHead): void
  /** Bytes go to the visitor; they are lent. */
  wrote(chunk: Buffer): void
  /** The rest will not come; the visitor has seen the cut. */
  cutShort(error: Error): void
  /** The service's answer is not needed: another one is sent. */
  dropUpstream(): void
  /** A module asked to close the connection. */
  hangUp(): void
  /** A module failed. */
  broke(error: unknown): void
  /** Whether the answer is no longer needed. */
  readonly isOver: boolean
}

/** The body of an answer, through encoders if there are any, with backpressure both ways. */
export class AnswerBody implements BodySink {
  /** Bytes sent to the visitor. */
  sent = 0
  readonly #writer: BodyWriter
  readonly #owner: AnswerOwner
  readonly #removed: ReadonlySet<string> | undefined
  /** A chain, of one at least. */
  readonly #encoders: readonly Transform[] | undefined
  #trailers: HeaderList | undefined
  #reader: BodyReader | undefined
  #isOver = false

  /** `removed`: names that must not be sent as trailers. */
  constructor(
    writer: BodyWriter,
    owner: AnswerOwner,
    encoders: readonly Transform[] | undefined,
    removed: ReadonlySet<string> | undefined,
  ) {
    this.#writer = writer
    this.#owner = owner
    this.#removed = removed
    this.#encoders = encoders
    if (!encoders) return
    const last = encoders.reduce((from, to) => from.pipe(to))
    for (const encoder of encoders) encoder.on('error', (error) => this.failed(error))
    encoders[0]?.on('drain', () => this.#reader?.resume())
    last.on('data', (chunk: Buffer) => {
      if (!this.#write(chunk)) last.pause()
    })
    last.on('end', () => this.#end())
  }

  /** Forwards the body of `reader`. */
  readFrom(reader: BodyReader): void {
    this.#reader = reader
    reader.read(this)
  }

  /** Sends `body`, which is complete. */
  sendWhole(body: Buffer): void {
    if (body.length > 0) this.data(body)
    this.end(undefined)
  }

  /** Stops; the body is no longer read. */
  stop(): void {
    this.#isOver = true
    if (this.#encoders) for (const encoder of this.#encoders) encoder.destroy()
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return
    const first = this.#encoders?.[0]
    const hasRoom = first ? first.write(keepBytes(chunk)) : this.#write(chunk)
    if (!hasRoom) this.#reader?.pause()
  }

  end(trailers: HeaderList | undefined): void {
    if (this.#isOver) return
    this.#trailers = stripTrailers(trailers, this.#removed)
    const first = this.#encoders?.[0]
    if (first) first.end()
    else this.#end()
  }

  failed(error: Error): void {
    if (this.#isOver) return
    this.stop()
    this.#writer.abort()
    this.#owner.cutShort(error)
  }

  #write(chunk: Buffer): boolean {
    if (this.#isOver) return true
    this.sent += chunk.length
    this.#owner.wrote(chunk)
    if (this.#writer.write(chunk)) return true
    // Backpressure applies to the last stage before the visitor.
    this.#writer.onDrain ??= () => (this.#encoders?.at(-1) ?? this.#reader)?.resume()
    return false
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#writer.end(this.#trailers)
  }
}
