/** One exchange as bytes: numbers at fixed offsets, then the lengths of the texts, then all texts as one. */
import type { RecordRing } from '../../lib/bytes/record-ring.ts'
import { flatText } from '../../lib/text/flat-text.ts'
import type { SeenExchange } from '../../model/exchange.ts'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { AccessRecord } from './access-record.ts'

/**
 * The texts in their order, and the most characters of each that are kept. Texts about the destination come last: they are the
 * same for most exchanges with a service, and are copied as bytes.
 */
const texts = {
  method: 32,
  path: 1024,
  ip: 64,
  fault: 64,
  capture: 64,
  replay: 64,
  decided: 2048,
  host: 255,
  edge: 64,
  route: 64,
  target: 128,
  owner: 64,
} as const

type TextName = keyof typeof texts

const names = Object.keys(texts) as TextName[]

/** The most characters of one decision of a module. */
const DECIDED_CHARACTERS = 256

const ENDED_AT = 0
const STARTED_AT = 8
const BYTES_IN = 16
const BYTES_OUT = 24
const LAST_PART = 32
const DURATION = 40
const PASSED = 44
const SENT = 48
const ANSWERED = 52
const STATUS = 56
const FLAGS = 58
const LENGTHS = 60
const TEXT = LENGTHS + 2 * names.length

const CUT = 1
const SECURE = 2
const HTTP2 = 4
const PATH_CUT = 8
const BODIES = 16

/** The most bytes of UTF-8 that one character of a string takes. */
const MAX_BYTES_PER_CHARACTER = 3

/** Between the names and values of what was decided. */
const SEPARATOR = '\0'

/** Where an exchange went. */
type Way = Pick<AccessRecord, 'host' | 'edge' | 'route' | 'target' | 'ownerId'>

/** The same as bytes, and the lengths in characters. */
interface WrittenWay extends Way {
  readonly bytes: Buffer
  readonly lengths: readonly number[]
}

/** How many ways are remembered; beyond that all are forgotten, and each is encoded once more. */
const MAX_WAYS = 1000

/** Writes records into their places in a ring. */
export class RecordWriter {
  readonly #ring: RecordRing
  /** A view of the ring's bytes, through which numbers are written several times as fast. */
  readonly #view: DataView
  /** By service; by edge where there was none. */
  readonly #ways = new Map<string, WrittenWay>()

  constructor(ring: RecordRing) {
    const { buffer, byteOffset, length } = ring.bytes
    this.#ring = ring
    this.#view = new DataView(buffer, byteOffset, length)
  }

  /** Writes an exchange that ended at `endedAt`. */
  write(given: AccessRecord, endedAt: number): void {
    const { kept, sentTarget } = given
    const way = this.#wayOf(given)
    const method = cut(given.method, texts.method)
    const path = cut(sentTarget, texts.path)
    const ip = cut(given.peer.ip, texts.ip)
    const fault = given.fault ?? ''
    const capture = kept?.captureId ?? ''
    const replay = given.replay?.of ?? ''
    const decided = given.found === undefined ? '' : writeFields(given.found)
    const rest = fault + capture + replay + decided
    const characters = method.length + path.length + ip.length + rest.length
    const ring = this.#ring
    const from = ring.room(TEXT + MAX_BYTES_PER_CHARACTER * characters + way.bytes.length)
    if (from < 0) return
    const view = this.#view
    view.setFloat64(from + ENDED_AT, endedAt)
    view.setFloat64(from + STARTED_AT, given.startedAt)
    view.setFloat64(from + BYTES_IN, given.bytesIn)
    view.setFloat64(from + BYTES_OUT, given.bytesOut)
    view.setFloat64(from + LAST_PART, kept?.lastPart ?? -1)
    // The clock may have been set back.
    view.setInt32(from + DURATION, Math.max(0, given.durationMs))
    view.setInt32(from + PASSED, given.passedMs)
    view.setInt32(from + SENT, given.sentMs)
    view.setInt32(from + ANSWERED, given.answeredMs)
    view.setUint16(from + STATUS, given.status)
    view.setUint8(
      from + FLAGS,
      (given.isCut ? CUT : 0) |
        (given.scheme === 'https' ? SECURE : 0) |
        (given.version === '2' ? HTTP2 : 0) |
        (sentTarget.length > texts.path ? PATH_CUT : 0) |
        (kept?.hasBodies ? BODIES : 0),
    )
    let at = from + LENGTHS
    at = setLength(view, at, method.length)
    at = setLength(view, at, path.length)
    at = setLength(view, at, ip.length)
    at = setLength(view, at, fault.length)
    at = setLength(view, at, capture.length)
    at = setLength(view, at, replay.length)
    at = setLength(view, at, decided.length)
    for (let i = 0; i < way.lengths.length; i++) at = setLength(view, at, way.lengths[i] ?? 0)
    at = writeText(ring.bytes, at, method)
    at = writeText(ring.bytes, at, path)
    at = writeText(ring.bytes, at, ip)
    if (rest !== '') at += ring.bytes.write(rest, at)
    ring.bytes.set(way.bytes, at)
    ring.keep(at + way.bytes.length - from)
  }

  #wayOf(given: AccessRecord): WrittenWay {
    const { host, edge, route, target, ownerId } = given
    // Without an edge, the host is whatever a visitor sent, of any length, and is not remembered.
    const key = edge === undefined ? undefined : (target ?? edge)
    const known = key === undefined ? undefined : this.#ways.get(key)
    if (known && isSame(known, given)) return known
    const parts = [
      cut(host, texts.host),
      cut(edge ?? '', texts.edge),
      cut(route ?? '', texts.route),
      cut(target ?? '', texts.target),
      cut(ownerId ?? '', texts.owner),
    ]
    const lengths = parts.map(({ length }) => length)
    const way = { host, edge, route, target, ownerId, bytes: Buffer.from(parts.join('')), lengths }
    if (key === undefined) return way
    if (this.#ways.size >= MAX_WAYS) this.#ways.clear()
    // A string that is kept must not be a slice of a longer one.
    this.#ways.set(key, { ...way, host: flatText(host) })
    return way
  }
}

function isSame(one: Way, other: Way): boolean {
  return (
    one.host === other.host &&
    one.edge === other.edge &&
    one.route === other.route &&
    one.target === other.target &&
    one.ownerId === other.ownerId
  )
}

/** Up to this many characters a text is written faster here than by Node. */
const SHORT_CHARACTERS = 100

/** The last character that is one byte in UTF-8. */
const LAST_ASCII = 0x7f

/** Returns where it ends. A broken character becomes another of the same length. */
function writeText(bytes: Buffer, at: number, text: string): number {
  const { length } = text
  if (length > SHORT_CHARACTERS) return at + bytes.write(text, at)
  for (let i = 0; i < length; i++) {
    const character = text.charCodeAt(i)
    if (character > LAST_ASCII) return at + bytes.write(text, at)
    bytes[at + i] = character
  }
  return at + length
}

function setLength(view: DataView, at: number, length: number): number {
  view.setUint16(at, length)
  return at + 2
}

function cut(text: string, length: number): string {
  return text.length > length ? text.slice(0, length) : text
}

function writeFields(found: ReadonlyMap<string, string>): string {
  let text = ''
  for (const [name, value] of found) {
    const more = `${name}${SEPARATOR}${cut(value, DECIDED_CHARACTERS).replaceAll(SEPARATOR, ' ')}${SEPARATOR}`
    if (text.length + more.length > texts.decided) break
    text += more
  }
  return text
}

/** A record that is read; its bytes are lent. */
export class ReadRecord {
  readonly #bytes: Buffer
  #parts: Readonly<Record<TextName, string>> | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get endedAt(): number {
    return this.#bytes.readDoubleBE(ENDED_AT)
  }

  get startedAt(): number {
    return this.#bytes.readDoubleBE(STARTED_AT)
  }

  get status(): number {
    return this.#bytes.readUInt16BE(STATUS)
  }

  get lastPart(): number {
    return this.#bytes.readDoubleBE(LAST_PART)
  }

  /** Whether bodies were kept. */
  get hasBodies(): boolean {
    return (this.#bytes.readUInt8(FLAGS) & BODIES) !== 0
  }

  /** Undefined when it is empty. */
  text(name: TextName): string | undefined {
    this.#parts ??= this.#split()
    const text = this.#parts[name]
    return text === '' ? undefined : text
  }

  /** All fields except those that only the ring knows. */
  plain(): Omit<SeenExchange, 'id' | 'sessionId'> {
    const bytes = this.#bytes
    const flags = bytes.readUInt8(FLAGS)
    const durationMs = bytes.readInt32BE(DURATION)
    const [passed, sent, answered] = [bytes.readInt32BE(PASSED), bytes.readInt32BE(SENT), bytes.readInt32BE(ANSWERED)]
    return {
      startedAt: this.startedAt,
      durationMs,
      timings: {
        modules: passed < 0 ? undefined : passed,
        dial: between(passed, sent),
        wait: between(sent, answered),
        receive: between(answered, durationMs),
      },
      method: this.text('method') ?? '',
      host: this.text('host') ?? '',
      path: this.text('path') ?? '',
      isPathCut: (flags & PATH_CUT) !== 0,
      status: this.status,
      // Written from a code.
      fault: this.text('fault') as VisitorErrorCode | undefined,
      bytesIn: bytes.readDoubleBE(BYTES_IN),
      bytesOut: bytes.readDoubleBE(BYTES_OUT),
      version: (flags & HTTP2) === 0 ? '1.1' : '2',
      scheme: (flags & SECURE) === 0 ? 'http' : 'https',
      ip: this.text('ip') ?? '',
      edgeId: this.text('edge'),
      routeId: this.text('route'),
      ownerId: this.text('owner'),
      target: this.text('target'),
      decided: read(this.text('decided') ?? ''),
      isCut: (flags & CUT) !== 0,
      captureId: this.text('capture'),
      replayOf: this.text('replay'),
    }
  }

  #split(): Readonly<Record<TextName, string>> {
    const all = this.#bytes.toString('utf8', TEXT)
    let at = 0
    const parts = names.map((name, i) => {
      const from = at
      at += this.#bytes.readUInt16BE(LENGTHS + 2 * i)
      return [name, all.slice(from, at)]
    })
    return Object.fromEntries(parts) as Record<TextName, string> // one for each name
  }
}

/** Undefined when either did not happen. */
function between(from: number, to: number): number | undefined {
  return from < 0 || to < 0 ? undefined : Math.max(0, to - from)
}

function read(decided: string): Record<string, string> {
  const parts = decided.split(SEPARATOR)
  const pairs: [string, string][] = []
  for (let i = 0; i + 1 < parts.length; i += 2) pairs.push([parts[i] ?? '', parts[i + 1] ?? ''])
  return Object.fromEntries(pairs)
}
