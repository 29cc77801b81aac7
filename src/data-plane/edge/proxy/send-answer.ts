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

/** The body of an answer, through encoders if there are any. */
export class AnswerBody implements BodySink {
  /** Bytes sent to the visitor. */
  sent = 0
  readonly #writer: BodyWriter
  readonly #owner: AnswerOwner
  readonly #removed: ReadonlySet<string> | undefined
  #encoding: Encoding | undefined
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
    if (encoders && encoders.length > 0) {
      this.#encoding = new Encoding(encoders, {
        room: () => this.#reader?.resume(),
        data: (chunk) => this.#write(chunk),
        end: (trailers) => this.#end(trailers),
        failed: (error) => this.failed(error),
      })
    }
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
    this.#encoding?.destroy()
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return
    const hasRoom = this.#encoding ? this.#encoding.write(chunk) : this.#write(chunk)
    if (!hasRoom) this.#reader?.pause()
  }

  end(trailers: HeaderList | undefined): void {
    if (this.#isOver) return
    const kept = stripTrailers(trailers, this.#removed)
    if (this.#encoding) this.#encoding.end(kept)
    else this.#end(kept)
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
    this.#writer.onDrain ??= () => (this.#encoding ?? this.#reader)?.resume()
    return false
  }

  #end(trailers: HeaderList | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#writer.end(trailers)
  }
}

interface EncodingSink {
  /** The encoders have room again. */
  room(): void
  /** Encoded bytes; false asks to wait for `resume`. */
  data(chunk: Buffer): boolean
  end(trailers: HeaderList | undefined): void
  failed(error: Error): void
}

/** A body through a chain of Node transforms, with backpressure both ways. */
class Encoding {
  readonly #encoders: readonly Transform[]
  readonly #first: Transform
  readonly #last: Transform
  #trailers: HeaderList | undefined

  constructor(encoders: readonly Transform[], sink: EncodingSink) {
    this.#encoders = encoders
    // The caller has at least one.
    this.#first = encoders[0] as Transform
    this.#last = encoders.reduce((from, to) => from.pipe(to))
    for (const encoder of encoders) encoder.on('error', (error) => sink.failed(error))
    this.#first.on('drain', () => sink.room())
    this.#last.on('data', (chunk: Buffer) => {
      if (!sink.data(chunk)) this.#last.pause()
    })
    this.#last.on('end', () => sink.end(this.#trailers))
  }

  write(chunk: Buffer): boolean {
    return this.#first.write(keepBytes(chunk))
  }

  end(trailers: HeaderList | undefined): void {
    this.#trailers = trailers
    this.#first.end()
  }

  resume(): void {
    this.#last.resume()
  }

  destroy(): void {
    for (const encoder of this.#encoders) encoder.destroy()
  }
}
