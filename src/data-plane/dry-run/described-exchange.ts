/** A described or repeated request in the form that the proxy takes: the beginning of its answer is kept, and nothing is sent. */
import type { ByteSink, ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { HeaderList } from '../../lib/http/header-list.ts'
import type {
  BodyReader,
  BodySink,
  BodyWriter,
  Exchange,
  RequestHead,
  ResponseHead,
} from '../requests/http-exchange.ts'

/** Bytes of the answer that are kept. */
const MAX_KEPT = 64 * 1024

export class DescribedExchange implements Exchange {
  readonly head: RequestHead
  readonly body: BodyReader
  onAbort: (() => void) | undefined
  onDone: (() => void) | undefined
  /** The head of the answer. */
  answer: { readonly status: number; readonly headers: HeaderList } | undefined
  isClosed = false
  readonly #kept: Buffer[] = []
  #keptBytes = 0

  constructor(head: RequestHead, body: Buffer) {
    this.head = head
    this.body = bodyOf(body)
  }

  /** The beginning of the body of the answer. */
  get answered(): Buffer {
    return Buffer.concat(this.#kept).subarray(0, MAX_KEPT)
  }

  inform(): void {}

  endConnection(): void {}

  ignoreBody(): void {}

  hangUp(): void {
    this.isClosed = true
    setImmediate(() => this.onAbort?.())
  }

  respond({ status, headers }: ResponseHead): BodyWriter {
    this.answer = { status, headers }
    return {
      onDrain: undefined,
      write: (chunk) => {
        // Copied, since it is lent.
        if (this.#keptBytes < MAX_KEPT) this.#kept.push(Buffer.from(chunk))
        this.#keptBytes += chunk.length
        return true
      },
      end: () => void setImmediate(() => this.onDone?.()),
      abort: () => void setImmediate(() => this.onAbort?.()),
    }
  }

  upgrade({ status, headers }: ResponseHead): ByteStream {
    this.answer = { status, headers }
    return new SilentStream()
  }
}

/** A body that is complete in memory. */
export function bodyOf(bytes: Buffer): BodyReader {
  let sink: BodySink | undefined
  let isPaused = false
  let isSent = false
  let isEnded = false
  const flow = (): void => {
    if (isPaused || isEnded || !sink) return
    if (!isSent && bytes.length > 0) {
      isSent = true
      sink.data(Buffer.from(bytes))
    }
    if (isPaused) return
    isEnded = true
    sink.end(undefined)
  }
  return {
    read(given) {
      sink = given
      setImmediate(flow)
    },
    pause() {
      isPaused = true
    },
    resume() {
      isPaused = false
      setImmediate(flow)
    },
  }
}

/** A stream in a dry run: it has no other end, and closes as soon as it gets a sink. */
export class SilentStream implements ByteStream {
  #isClosed = false

  write(): boolean {
    return true
  }

  end(): void {}

  reset(): void {}

  attach(sink: ByteSink): void {
    setImmediate(() => {
      if (this.#isClosed) return
      this.#isClosed = true
      sink.end()
      sink.closed(undefined)
    })
  }

  pause(): void {}

  resume(): void {}
}
