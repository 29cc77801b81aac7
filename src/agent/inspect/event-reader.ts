/** Finds server-sent events in a passing body: each is some lines followed by an empty one. */
import { KeptBytes } from './kept-bytes.ts'
import { FRAME_BYTES } from './websocket-reader.ts'

export interface SentEvent {
  /** The size of all its lines, in bytes. */
  readonly size: number
  /** The first bytes of its lines. */
  readonly bytes: Buffer
}

const CR = 0x0d
const LF = 0x0a

export class EventReader {
  readonly #onEvent: (event: SentEvent) => void
  #event = new KeptBytes(FRAME_BYTES)
  /** The length of the current line so far, in bytes, without a CR at its end. */
  #line = 0

  constructor(onEvent: (event: SentEvent) => void) {
    this.#onEvent = onEvent
  }

  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(LF, at)
      const next = end < 0 ? chunk.length : end + 1
      const part = chunk.subarray(at, next)
      this.#line += end < 0 ? lengthWithoutCr(part) : lengthWithoutCr(part.subarray(0, -1))
      at = next
      if (end >= 0 && this.#line === 0) this.#finish()
      else this.#event.add(part)
      if (end >= 0) this.#line = 0
    }
  }

  #finish(): void {
    const { size, bytes } = this.#event
    if (size === 0) return
    this.#event = new KeptBytes(FRAME_BYTES)
    this.#onEvent({ size, bytes })
  }
}

function lengthWithoutCr(part: Buffer): number {
  return part.at(-1) === CR ? part.length - 1 : part.length
}

/** The fields of an event as a browser would read them. */
export function eventFields(bytes: Buffer): { readonly event: string; readonly id: string; readonly data: string } {
  const data: string[] = []
  let event = 'message'
  let id = ''
  for (const line of bytes.toString('utf8').split(/\r?\n/)) {
    const [, name = line, value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? []
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    else if (name === 'id') id = value
  }
  return { event, id, data: data.join('\n') }
}
