/**
 * Pairs the requests and responses of one HTTP/1 connection between a visitor and a service, and reports both to a watcher.
 */
import { proxyHeaderLength } from '../proxy-line.ts'
import { EventReader, type SentEvent } from './event-reader.ts'
import { type BodyFraming, HttpReader } from './http-reader.ts'
import { type WebSocketFrame, WebSocketReader } from './websocket-reader.ts'

/** How many pipelined requests may wait for their responses. */
const MAX_PENDING = 100

export interface PassingRequest {
  readonly method: string
  readonly target: string
  /** `HTTP/1.1`. */
  readonly protocol: string
  /** All of it, with the empty line; each character is a byte. */
  readonly text: string
}

export interface PassingResponse {
  readonly status: number
  /** The whole head, as for a request. */
  readonly text: string
}

/** Why an exchange has ended. `unserved`: no response. `left`: the visitor left, or either side before the end. */
export type ExchangeEnd = 'whole' | 'unserved' | 'left'

export type Sender = 'client' | 'service'

/** Receives one exchange. Bytes are lent: they change as soon as the call returns. */
export interface ExchangeNotes {
  onRequestBody?(chunk: Buffer): void
  /** The request is complete. */
  onRequestEnded?(): void
  onAnswered(head: PassingResponse): void
  onResponseBody?(chunk: Buffer): void
  onFrame?(from: Sender, frame: WebSocketFrame): void
  onEvent?(event: SentEvent): void
  onEnded(how: ExchangeEnd): void
}

/** Receives all exchanges of a connection. */
export interface ExchangeWatcher {
  began(request: PassingRequest): ExchangeNotes
  /** Whether the exchange that begins is left out: then it is not even read. The watcher counts it. */
  leavesOut?(): boolean
}

interface Pending {
  readonly notes: ExchangeNotes
  readonly isHead: boolean
}

const NOTHING: Buffer = Buffer.alloc(0)

const requestLine = /^([!#$%&'*+.^_`|~\w-]{1,32}) (\S+) (HTTP\/1\.[01])\r\n/
const statusLine = /^HTTP\/1\.[01] (\d{3})[ \r]/
/** The beginning of a request. */
const requestStart = /^[!#$%&'*+.^_`|~\w-]{1,32} \S/
const REQUEST_START_BYTES = 34
/** The fields that say what follows a head. */
const framingFields = /\r\n(content-length|transfer-encoding|upgrade|content-type|content-encoding):[ \t]*([^\r\n]*)/gi

/** Gets copies of the bytes, or lent bytes, and changes nothing. */
export class ConnectionWatch {
  readonly #watcher: ExchangeWatcher
  readonly #requests: HttpReader
  readonly #responses: HttpReader
  /** Exchanges without a complete response, oldest first. */
  readonly #pending: Pending[] = []
  /** The exchange whose request is being read. */
  #asking: ExchangeNotes | undefined
  #isInterim = false
  /** The first bytes from the visitor, while they may be a PROXY header. */
  #opening = NOTHING
  #isOpened = false
  #events: EventReader | undefined
  /** Readers of WebSocket frames of both sides, after an upgrade. */
  #sockets: { readonly client: WebSocketReader; readonly service: WebSocketReader } | undefined
  #isAnswering = false
  #isUpgraded = false
  #isOver = false
  /**
   * Exchanges that are left out pass unread, so that they cost nothing. Then only one thing shows where the next exchange
   * begins: the visitor sends after the service did.
   */
  #isResting = false
  #hasServiceSpoken = false

  constructor(watcher: ExchangeWatcher) {
    this.#watcher = watcher
    this.#requests = new HttpReader({
      head: (head) => this.#request(head),
      body: (chunk) => this.#asking?.onRequestBody?.(chunk),
      ended: () => {
        this.#asking?.onRequestEnded?.()
        this.#asking = undefined
      },
      other: (chunk) => this.#sockets?.client.read(chunk),
    })
    this.#responses = new HttpReader({
      head: (head) => this.#response(head),
      body: (chunk) => {
        this.#pending[0]?.notes.onResponseBody?.(chunk)
        this.#events?.read(chunk)
      },
      ended: () => this.#answered(),
      other: (chunk) => this.#sockets?.service.read(chunk),
    })
  }

  /** Bytes from the visitor, on their way to the service. */
  fromVisitor(chunk: Buffer): void {
    if (this.#isOver || this.#rests(chunk)) return
    try {
      const rest = this.#isOpened ? chunk : this.#open(chunk)
      if (rest) this.#requests.read(rest)
      this.#check()
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Bytes from the service, on their way to the visitor. */
  fromService(chunk: Buffer): void {
    if (this.#isOver) return
    if (this.#isResting) {
      this.#hasServiceSpoken = true
      return
    }
    try {
      this.#responses.read(chunk)
      this.#check()
    } catch (error) {
      this.#failed(error)
    }
  }

  /** The service sends no more, or could not be reached. */
  serviceEnded(): void {
    try {
      if (!this.#isOver && this.#responses.endsWithStream) this.#answered()
      this.#close('unserved')
    } catch (error) {
      this.#failed(error)
    }
  }

  /** The visitor disconnected, or both are done. */
  closed(): void {
    try {
      this.#close('left')
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Whether bytes from the visitor pass unread. */
  #rests(chunk: Buffer): boolean {
    if (this.#isResting) {
      if (!this.#hasServiceSpoken) return true
      this.#hasServiceSpoken = false
      this.#isResting =
        this.#watcher.leavesOut?.() === true || !requestStart.test(chunk.toString('latin1', 0, REQUEST_START_BYTES))
    } else if (this.#isBetween) this.#isResting = this.#watcher.leavesOut?.() === true
    return this.#isResting
  }

  /** Whether the last exchange is over, and the next has not begun. */
  get #isBetween(): boolean {
    return this.#isOpened && this.#pending.length === 0 && this.#requests.isBetween && this.#responses.isBetween
  }

  /** Stops watching when one direction cannot be parsed, since the other has no meaning then. */
  #check(): void {
    const isLost = this.#requests.isLost || this.#responses.isLost
    if (isLost || this.#sockets?.client.isLost || this.#sockets?.service.isLost) this.#close('left')
  }

  /** A defect in the inspector must not affect a visitor. */
  #failed(error: unknown): void {
    this.#isOver = true
    process.emitWarning(error instanceof Error ? error : String(error))
  }

  /** A PROXY header may precede the first request; returns what follows it, once that is there. */
  #open(chunk: Buffer): Buffer | undefined {
    const bytes = this.#opening.length === 0 ? chunk : Buffer.concat([this.#opening, chunk])
    const length = proxyHeaderLength(bytes)
    this.#isOpened = length !== undefined
    this.#opening = this.#isOpened ? NOTHING : Buffer.from(bytes)
    return length === undefined ? undefined : bytes.subarray(length)
  }

  #request(head: Buffer): BodyFraming | undefined {
    const text = head.toString('latin1')
    const [, method = '', target = '', protocol = ''] = requestLine.exec(text) ?? []
    const fields = framingOf(text)
    if (method === '' || fields.isBroken || this.#pending.length >= MAX_PENDING) return undefined
    const notes = this.#watcher.began({ method, target, protocol, text })
    this.#pending.push({ notes, isHead: method === 'HEAD' })
    this.#asking = notes
    return fields.isChunked ? 'chunked' : (fields.length ?? 0)
  }

  #response(head: Buffer): BodyFraming | undefined {
    const text = head.toString('latin1')
    const status = Number(statusLine.exec(text)?.[1])
    const [pending] = this.#pending
    if (Number.isNaN(status) || !pending) return undefined
    this.#isInterim = status < 200 && status !== 101
    if (this.#isInterim) return 0
    pending.notes.onAnswered({ status, text })
    this.#isAnswering = true
    const fields = framingOf(text)
    if (fields.isBroken) return undefined
    if (status === 101) return this.#upgrade(pending.notes, fields.upgrade)
    if (pending.isHead || status === 204 || status === 304) return 0
    if (fields.isEventStream) this.#events = new EventReader((event) => pending.notes.onEvent?.(event))
    return fields.isChunked ? 'chunked' : (fields.length ?? 'until-close')
  }

  #upgrade(notes: ExchangeNotes, protocol: string): BodyFraming {
    // A client does not send the new protocol before it has read this response.
    this.#requests.becomeOther()
    this.#isUpgraded = true
    if (protocol.toLowerCase() === 'websocket') {
      this.#sockets = {
        client: new WebSocketReader((frame) => notes.onFrame?.('client', frame)),
        service: new WebSocketReader((frame) => notes.onFrame?.('service', frame)),
      }
    }
    return 'other'
  }

  #answered(): void {
    // The final response follows.
    if (this.#isInterim) return
    this.#isAnswering = false
    this.#events = undefined
    this.#pending.shift()?.notes.onEnded('whole')
  }

  #close(how: ExchangeEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const [i, { notes }] of this.#pending.entries()) {
      const isBegun = i === 0 && this.#isAnswering
      notes.onEnded(isBegun ? (this.#isUpgraded ? 'whole' : 'left') : how)
    }
    this.#pending.length = 0
    this.#asking = undefined
  }
}

interface FramingFields {
  readonly length: number | undefined
  readonly isChunked: boolean
  readonly upgrade: string
  readonly isEventStream: boolean
  /** Whether there are two lengths, or an invalid one. */
  readonly isBroken: boolean
}

const NO_FIELDS: FramingFields = {
  ...{ length: undefined, isChunked: false, upgrade: '', isEventStream: false, isBroken: false },
}

function framingOf(head: string): FramingFields {
  let fields: { -readonly [K in keyof FramingFields]: FramingFields[K] } | undefined
  let isEncoded = false
  framingFields.lastIndex = 0
  // Not `matchAll`, which copies the expression for each head.
  for (let found = framingFields.exec(head); found; found = framingFields.exec(head)) {
    const [, name = '', value = ''] = found
    fields ??= { ...NO_FIELDS }
    switch (name.toLowerCase()) {
      case 'content-length': {
        const length = /^\d{1,15}[ \t]*$/.test(value) ? Number(value) : undefined
        if (length === undefined || (fields.length ?? length) !== length) fields.isBroken = true
        fields.length = length
        break
      }
      case 'transfer-encoding':
        fields.isChunked = /(?:^|,)[ \t]*chunked[ \t]*$/i.test(value)
        break
      case 'upgrade':
        fields.upgrade = value.trim()
        break
      case 'content-encoding':
        isEncoded = !/^(?:identity)?[ \t]*$/i.test(value)
        break
      default:
        fields.isEventStream = /^text\/event-stream\b/i.test(value)
    }
  }
  if (fields && isEncoded) fields.isEventStream = false
  return fields ?? NO_FIELDS
}
