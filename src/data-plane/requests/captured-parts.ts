/** Heads and bodies that captures keep, in parts as they came, each with the number of the part before. */
import { RecordRing } from '../../lib/bytes/record-ring.ts'
import type { HeaderList } from '../../lib/http/header-list.ts'
import { utf8Text } from '../../lib/text/utf8-text.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { KeptBody, KeptHeader, KeptMessage, SeenExchange } from '../../model/exchange.ts'

/** The kinds of parts. */
export const partKinds = { requestHead: 0, requestBody: 1, responseHead: 2, responseBody: 3 } as const

type PartKind = (typeof partKinds)[keyof typeof partKinds]

/** In front of each part: the number of the one before, and the kind. */
const PART_HEAD = 9

/** The size of a small part, in bytes. */
const USUAL_BYTES = 256

/** The most bytes of one part, so that a new one replaces few others. */
const PART_BYTES = 16 * 1024

/** The most bytes of a head, as stored; further headers are left out. */
const HEAD_BYTES = 64 * 1024

/** The bytes of each header besides its name and value. */
const HEADER_BYTES = 48

/** Parts that are read before other work may run. */
const STEPS = 64

/** Nothing is held outside the ring, so the ring bounds the memory of exchanges under way too. */
export class CapturedParts {
  readonly #ring: RecordRing

  constructor({ bytes }: { readonly bytes: number }) {
    this.#ring = new RecordRing({ bytes, usualBytes: USUAL_BYTES })
  }

  /** Keeps lent bytes, in one part or several; returns the number of the last. */
  add(before: number, kind: PartKind, bytes: Buffer): number {
    let last = before
    let from = 0
    do {
      const to = Math.min(bytes.length, from + PART_BYTES)
      const length = PART_HEAD + to - from
      const at = this.#ring.room(length)
      if (at < 0) return last
      this.#ring.bytes.writeDoubleBE(last, at)
      this.#ring.bytes.writeUInt8(kind, at + 8)
      bytes.copy(this.#ring.bytes, at + PART_HEAD, from, to)
      this.#ring.keep(length)
      last = this.#ring.next - 1
      from = to
    } while (from < bytes.length)
    return last
  }

  /** All of its memory, for tests. */
  dump(): Buffer {
    return this.#ring.bytes
  }

  /** All parts up to number `last`, by kind; undefined when some are gone. */
  async read(last: number): Promise<ReadonlyMap<number, Buffer> | undefined> {
    const parts: [number, Buffer][] = []
    const breath = othersTurn()
    for (let number = last; number >= 0; ) {
      const part = this.#ring.read(number)
      if (!part) return undefined
      // Copied, since new parts may replace it meanwhile.
      parts.push([part.readUInt8(8), Buffer.from(part.subarray(PART_HEAD))])
      number = part.readDoubleBE(0)
      if (parts.length % STEPS === 0) await breath()
    }
    const byKind = Map.groupBy(parts.reverse(), ([kind]) => kind)
    return new Map([...byKind].map(([kind, found]) => [kind, Buffer.concat(found.map(([, bytes]) => bytes))]))
  }
}

/** Headers as bytes, those that `isMasked` selects without their values. */
export function writtenHead(
  headers: HeaderList,
  { host, isMasked }: { readonly host?: string; readonly isMasked: (name: string) => boolean },
): Buffer {
  const kept: KeptHeader[] = host === undefined ? [] : [{ name: 'Host', value: host, isMasked: false }]
  let bytes = 0
  for (const [name, value] of headers) {
    bytes += name.length + value.length + HEADER_BYTES
    if (bytes > HEAD_BYTES) break
    kept.push(isMasked(name) ? { name, value: '', isMasked: true } : { name, value, isMasked: false })
  }
  return Buffer.from(JSON.stringify(kept))
}

/** What was kept of an exchange, as the API returns it. */
export function messagesOf(
  parts: ReadonlyMap<number, Buffer>,
  { bytesIn, bytesOut }: Pick<SeenExchange, 'bytesIn' | 'bytesOut'>,
  { hasBodies }: { readonly hasBodies: boolean },
): { readonly request: KeptMessage | undefined; readonly response: KeptMessage | undefined } {
  const message = (head: PartKind, body: PartKind, size: number): KeptMessage | undefined => {
    const headers = parts.get(head)
    if (!headers) return undefined
    return {
      headers: JSON.parse(headers.toString()) as KeptHeader[], // written above
      body: hasBodies ? bodyOf(parts.get(body) ?? Buffer.alloc(0), size) : undefined,
    }
  }
  return {
    request: message(partKinds.requestHead, partKinds.requestBody, bytesIn),
    response: message(partKinds.responseHead, partKinds.responseBody, bytesOut),
  }
}

function bodyOf(kept: Buffer, size: number): KeptBody {
  const text = utf8Text(kept, { isCut: kept.length < size })
  if (text === undefined || Buffer.byteLength(JSON.stringify(text)) > MAX_TEXT)
    return { size, kept: kept.length, encoding: 'base64', content: kept.toString('base64') }
  return { size, kept: kept.length, encoding: 'text', content: text }
}

/** A text that takes more than this as JSON, in bytes, is sent as bytes: a call between nodes has room for two such texts. */
const MAX_TEXT = 360 * 1024
