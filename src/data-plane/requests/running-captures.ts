/** Which edges are captured at this data plane, and what is kept of each of their exchanges. */
import type { Clock } from '../../lib/clock.ts'
import type { RunningCapture } from '../../model/capture.ts'
import { isSensitiveHeader } from '../../model/sensitive-headers.ts'
import type { KeptParts } from './access-record.ts'
import { CapturedParts, partKinds, writtenHead } from './captured-parts.ts'
import type { RequestHead, ResponseHead } from './http-exchange.ts'

/** Captures as the proxy uses them for each request. */
export type EdgeCaptures = Pick<RunningCaptures, 'isOff' | 'begin'>

export const noCaptures: EdgeCaptures = { isOff: true, begin: () => undefined }

interface CapturesOptions {
  /** Memory for what is kept, in bytes. */
  readonly bytes: number
  readonly now: Clock
}

/** A request that repeats an exchange. */
export interface Replay {
  /** The id of that exchange. */
  readonly of: string
  readonly capture: ExchangeCapture
  /** Called with the id of the new exchange, when it is over. */
  readonly noted: (id: string) => void
}

export class RunningCaptures {
  /** Whether nothing is captured, so that `begin` need not be called. */
  isOff = true
  readonly #options: CapturesOptions
  #running: ReadonlyMap<string, RunningCapture> = new Map()
  /** Created on first use. */
  #parts: CapturedParts | undefined

  constructor(options: CapturesOptions) {
    this.#options = options
  }

  /** Sets all captures that run from now on. */
  use(captures: readonly RunningCapture[]): void {
    this.#running = new Map(captures.map((capture) => [capture.edgeId, capture]))
    this.isOff = captures.length === 0
  }

  /** Undefined when this edge is not captured. */
  begin(edgeId: string): ExchangeCapture | undefined {
    const capture = this.#running.get(edgeId)
    if (!capture || capture.expiresAt <= this.#options.now()) return undefined
    return this.keep(capture)
  }

  /** Keeps one exchange, whether its edge is captured or not. */
  keep(capture: KeptAs): ExchangeCapture {
    return new ExchangeCapture(this.parts, capture)
  }

  get parts(): CapturedParts {
    this.#parts ??= new CapturedParts(this.#options)
    return this.#parts
  }
}

/** What is kept of an exchange. */
type KeptAs = Pick<RunningCapture, 'id' | 'bodies' | 'maxBodyBytes' | 'unmask'>

/** What is kept of one exchange in progress. */
export class ExchangeCapture implements KeptParts {
  readonly captureId: string
  readonly hasBodies: boolean
  lastPart = -1
  readonly #parts: CapturedParts
  readonly #isMasked: (name: string) => boolean
  #requestLeft: number
  #responseLeft: number

  constructor(parts: CapturedParts, { id, bodies, maxBodyBytes, unmask }: KeptAs) {
    this.#parts = parts
    this.captureId = id
    this.hasBodies = bodies
    this.#isMasked = unmask ? () => false : isSensitiveHeader
    this.#requestLeft = this.#responseLeft = bodies ? maxBodyBytes : 0
  }

  request({ headers, authority }: RequestHead): void {
    this.#add(partKinds.requestHead, writtenHead(headers, { host: authority, isMasked: this.#isMasked }))
  }

  /** The bytes are lent, here and below. */
  requestBody(chunk: Buffer): void {
    if (this.#requestLeft === 0) return
    const kept = chunk.subarray(0, this.#requestLeft)
    this.#requestLeft -= kept.length
    this.#add(partKinds.requestBody, kept)
  }

  response({ headers }: ResponseHead): void {
    this.#add(partKinds.responseHead, writtenHead(headers, { isMasked: this.#isMasked }))
  }

  responseBody(chunk: Buffer): void {
    if (this.#responseLeft === 0) return
    const kept = chunk.subarray(0, this.#responseLeft)
    this.#responseLeft -= kept.length
    this.#add(partKinds.responseBody, kept)
  }

  #add(kind: (typeof partKinds)[keyof typeof partKinds], bytes: Buffer): void {
    this.lastPart = this.#parts.add(this.lastPart, kind, bytes)
  }
}
