/** One exchange that the inspector keeps: the heads, the bodies up to a limit, and the frames as they came. */
import type { ExchangeEnd, ExchangeNotes, PassingRequest, PassingResponse, Sender } from './connection-watch.ts'
import type { SentEvent } from './event-reader.ts'
import type { InspectedExchanges } from './inspected-exchanges.ts'
import { KeptBytes } from './kept-bytes.ts'
import type { WebSocketFrame, WebSocketFrameType } from './websocket-reader.ts'

/** How much of each body is kept, in bytes. */
export const BODY_BYTES = 1024 * 1024

/** How many of the latest frames or events of one exchange are kept, and how many bytes of them. */
export const MAX_FRAMES = 1000
const FRAMES_BYTES = 1024 * 1024

/** The approximate memory of an exchange and of a frame besides their content, in bytes. */
const EXCHANGE_OVERHEAD = 1024
const FRAME_OVERHEAD = 256

/** A WebSocket frame, or an event that the service sent. */
export interface InspectedFrame extends Pick<WebSocketFrame, 'isLast' | 'isCompressed' | 'size' | 'bytes' | 'mask'> {
  /** Counts from 1 within the exchange. */
  readonly number: number
  /** Milliseconds since 1970. */
  readonly time: number
  readonly from: Sender
  readonly type: WebSocketFrameType | 'event'
}

/** Where an exchange came from. */
export interface ExchangeOrigin {
  readonly tunnelName: string
  readonly scheme: 'http' | 'https'
  /** `ip:port` of the visitor. */
  readonly clientAddress: string
  /** The id of the exchange that was sent again. */
  readonly replayOf: string | undefined
  readonly onEnded?: ((durationMs: number) => void) | undefined
}

export class InspectedExchange implements ExchangeNotes {
  readonly number: number
  readonly origin: ExchangeOrigin
  readonly method: string
  readonly target: string
  readonly protocol: string
  /** Each character is a byte. */
  readonly requestHead: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** One is shared by all exchanges, since each request is one. */
  readonly #keeper: InspectedExchanges
  readonly #began: number
  #requestBody: KeptBytes | undefined
  #responseHead: string | undefined
  #responseBody: KeptBytes | undefined
  #status: number | undefined
  #durationMs: number | undefined
  #end: ExchangeEnd | undefined
  readonly #frames: InspectedFrame[] = []
  #frameCount = 0
  #framesBytes = 0
  /** Bytes of WebSocket frames, by who sent them. */
  readonly #framed: Record<Sender, number> = { client: 0, service: 0 }
  #isRequestWhole = false
  #memory = 0
  #isDropped = false

  constructor(
    number: number,
    { method, target, protocol, text }: PassingRequest,
    origin: ExchangeOrigin,
    keeper: InspectedExchanges,
  ) {
    this.number = number
    this.origin = origin
    this.method = method
    this.target = target
    this.protocol = protocol
    this.requestHead = text
    this.#keeper = keeper
    this.startedAt = keeper.clock()
    this.#began = keeper.now()
    this.#grew(EXCHANGE_OVERHEAD + text.length)
  }

  get requestBody(): KeptBytes | undefined {
    return this.#requestBody
  }

  get responseHead(): string | undefined {
    return this.#responseHead
  }

  get responseBody(): KeptBytes | undefined {
    return this.#responseBody
  }

  get status(): number | undefined {
    return this.#status
  }

  /** The duration until its end, or until now. */
  get durationMs(): number {
    return this.#durationMs ?? this.#keeper.now() - this.#began
  }

  /** Undefined while it is open. */
  get end(): ExchangeEnd | undefined {
    return this.#end
  }

  /** The latest frames, oldest first. */
  get frames(): readonly InspectedFrame[] {
    return this.#frames
  }

  get frameCount(): number {
    return this.#frameCount
  }

  /** Whether either end left before it was complete. */
  get isCut(): boolean {
    return this.#end === 'left'
  }

  /** Whether all of the request came, and was kept. */
  get isRequestWhole(): boolean {
    const body = this.#requestBody
    return this.#isRequestWhole && (body === undefined || body.size === body.kept)
  }

  /** Bytes of the body, or of the content of frames. */
  bytesFrom(sender: Sender): number {
    const body = sender === 'client' ? this.#requestBody : this.#responseBody
    return (body?.size ?? 0) + this.#framed[sender]
  }

  onRequestBody(chunk: Buffer): void {
    if (this.#isDropped) return
    this.#requestBody ??= new KeptBytes(BODY_BYTES)
    this.#grew(this.#requestBody.add(chunk))
  }

  onRequestEnded(): void {
    this.#isRequestWhole = true
  }

  onAnswered({ status, text }: PassingResponse): void {
    if (this.#isDropped) return
    this.#status = status
    this.#responseHead = text
    this.#grew(text.length)
    this.#keeper.onChange(this)
  }

  onResponseBody(chunk: Buffer): void {
    if (this.#isDropped) return
    this.#responseBody ??= new KeptBytes(BODY_BYTES)
    this.#grew(this.#responseBody.add(chunk))
  }

  onFrame(from: Sender, frame: WebSocketFrame): void {
    this.#framed[from] += frame.size
    this.#addFrame({ ...frame, from })
  }

  onEvent({ size, bytes }: SentEvent): void {
    this.#addFrame({ from: 'service', type: 'event', isLast: true, isCompressed: false, mask: undefined, size, bytes })
  }

  onEnded(how: ExchangeEnd): void {
    this.#end = how
    this.#durationMs = this.#keeper.now() - this.#began
    this.origin.onEnded?.(this.#durationMs)
    if (!this.#isDropped) this.#keeper.onChange(this)
  }

  /** Frees its memory, to make room or because it was cleared. What still comes is not kept. */
  drop(): void {
    this.#isDropped = true
    this.#keeper.onGrew(-this.#memory)
    this.#memory = 0
    this.#frames.length = 0
    this.#requestBody = undefined
    this.#responseBody = undefined
  }

  #addFrame(frame: Omit<InspectedFrame, 'number' | 'time'>): void {
    if (this.#isDropped) return
    this.#frameCount++
    this.#frames.push({ ...frame, number: this.#frameCount, time: this.#keeper.clock() })
    let grown = frame.bytes.length + FRAME_OVERHEAD
    this.#framesBytes += grown
    while (this.#frames.length > MAX_FRAMES || this.#framesBytes > FRAMES_BYTES) {
      const taken = (this.#frames.shift()?.bytes.length ?? 0) + FRAME_OVERHEAD
      this.#framesBytes -= taken
      grown -= taken
    }
    this.#grew(grown)
    this.#keeper.onChange(this)
  }

  #grew(bytes: number): void {
    if (bytes === 0) return
    this.#memory += bytes
    this.#keeper.onGrew(bytes)
  }
}
