/** Bytes before and around a ClientHello, valid and invalid, from one seed; and a reader without any of our code. */
import type { Dice } from './smuggling-shapes.ts'

/** The limit on a hello with all its records, as documented. */
const HELLO_BYTES = 16 * 1024

export interface Names {
  /** Names that each have an edge, and a name that is not served. */
  readonly all: readonly string[]
}

/** The name that a complete hello requests; undefined unless there is one, and it requests exactly one name. */
export function nameAsked(bytes: Buffer): string | undefined {
  const message = firstMessage(bytes)
  if (message?.[0] !== 1) return undefined
  const view = new Walk(message.subarray(4))
  view.skip(2 + 32)
  view.block(1)
  view.block(2)
  view.block(1)
  if (view.isDone) return undefined
  const extensions = view.block(2)
  if (!extensions || !view.isDone) return undefined
  const found: Buffer[] = []
  for (const walk = new Walk(extensions); !walk.isDone; ) {
    const type = walk.number(2)
    const body = walk.block(2)
    if (!body) return undefined
    if (type === 0) found.push(body)
  }
  const [only, another] = found
  return only && !another ? hostName(only) : undefined
}

/** The handshake message in the first records; undefined when there is something else, or it is incomplete. */
function firstMessage(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; at + 5 <= bytes.length; ) {
    const size = bytes.readUInt16BE(at + 3)
    const end = at + 5 + size
    if (bytes[at] !== 22 || bytes[at + 1] !== 3 || size === 0 || end > HELLO_BYTES || end > bytes.length)
      return undefined
    parts.push(bytes.subarray(at + 5, end))
    at = end
    const message = Buffer.concat(parts)
    if (message.length < 4) continue
    const expected = 4 + message.readUIntBE(1, 3)
    // Nothing may follow the hello in its record.
    if (message.length > expected) return undefined
    if (message.length === expected) return message
  }
  return undefined
}

/** RFC 6066 §3: one name, of the only type defined. */
function hostName(body: Buffer): string | undefined {
  const walk = new Walk(body)
  const list = walk.block(2)
  if (!list || !walk.isDone) return undefined
  const names = new Walk(list)
  const type = names.number(1)
  const name = names.block(2)?.toString('latin1').toLowerCase().replace(/\.$/, '')
  const isName = name !== undefined && name.length <= 253 && /^([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/.test(name)
  return type === 0 && isName && names.isDone ? name : undefined
}

class Walk {
  readonly #bytes: Buffer
  #at = 0
  #isShort = false

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Whether the end was reached, or overrun. */
  get isDone(): boolean {
    return this.#isShort || this.#at === this.#bytes.length
  }

  skip(size: number): void {
    this.#at += size
    this.#isShort ||= this.#at > this.#bytes.length
  }

  number(size: number): number {
    const at = this.#at
    this.skip(size)
    return this.#isShort ? 0 : this.#bytes.readUIntBE(at, size)
  }

  /** Bytes that follow their length, which has `size` bytes; undefined when some are missing. */
  block(size: number): Buffer | undefined {
    const length = this.number(size)
    const from = this.#at
    this.skip(length)
    return this.#isShort ? undefined : this.#bytes.subarray(from, from + length)
  }
}

/** The bytes of one visitor. */
export function helloShape(dice: Dice, names: Names): Buffer {
  if (dice.chance(3)) return oldHello(dice)
  const isHarmless = dice.chance(30)
  const message = isHarmless
    ? helloMessage(dice, named(dice.pick(names.all)))
    : helloMessage(dice, nameShape(dice, names))
  let bytes = isHarmless && dice.chance(60) ? record(message) : records(dice, message)
  if (isHarmless) return bytes
  if (dice.chance(12)) bytes = Buffer.concat([bytes, trailer(dice)])
  for (let changes = dice.chance(35) ? 1 + dice.below(3) : 0; changes > 0; changes--) bytes = changed(bytes, dice)
  return bytes
}

function changed(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(bytes.length + 1)
  const before = bytes.subarray(0, at)
  switch (dice.below(4)) {
    case 0:
      return before
    case 1:
      return Buffer.concat([before, Buffer.of(dice.below(256)), bytes.subarray(at + 1)])
    case 2:
      return Buffer.concat([before, Buffer.of(dice.below(256)), bytes.subarray(at)])
    default:
      return Buffer.concat([before, bytes.subarray(at + 1 + dice.below(8))])
  }
}

function record(fragment: Buffer, { type = 22, version = 0x0301, length = fragment.length } = {}): Buffer {
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeUInt16BE(version, 1)
  head.writeUInt16BE(Math.min(length, 0xffff), 3)
  return Buffer.concat([head, fragment])
}

/** The message over one record or many, with something in between. */
function records(dice: Dice, message: Buffer): Buffer {
  const size = dice.chance(40) ? message.length : dice.pick([1, 2, 3, 4, 5, 16, 100, 1 + dice.below(message.length)])
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    if (dice.chance(size < 5 ? 1 : 10)) parts.push(intruder(dice))
    const version = dice.chance(95) ? 0x0301 : dice.pick([0x0300, 0x0303, 0x0304, 0x0200, 0x0403, 0x0000, 0x03ff])
    const fragment = message.subarray(at, at + size)
    const length = dice.chance(98) ? fragment.length : dice.pick([0, 1, fragment.length + 1, 16_385, 20_000, 0xffff])
    parts.push(record(fragment, { version, length }))
  }
  return Buffer.concat(parts)
}

/** A record that must not come before the hello is complete. */
function intruder(dice: Dice): Buffer {
  return dice.pick([
    record(Buffer.alloc(0)),
    record(Buffer.alloc(0), { type: 23 }),
    record(Buffer.of(1), { type: 20, version: 0x0303 }),
    record(Buffer.of(1, 0), { type: 21 }),
    record(Buffer.of(2, 40), { type: 21 }),
    record(Buffer.of(1, 90), { type: 21 }),
    record(Buffer.from('GET / HTTP/1.1\r\n\r\n'), { type: 23 }),
    record(Buffer.of(0, 0, 0, 0)),
    record(Buffer.alloc(16_384, 1)),
    record(Buffer.of(1, 0, 3), { type: 24 }),
  ])
}

/** What follows a complete hello. */
function trailer(dice: Dice): Buffer {
  return dice.pick([intruder(dice), Buffer.alloc(dice.below(100), dice.below(256)), Buffer.alloc(40_000, 22)])
}

function block(lengthBytes: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(lengthBytes)
  length.writeUIntBE(body.length % 256 ** lengthBytes, 0, lengthBytes)
  return Buffer.concat([length, body])
}

const u16 = (value: number): Buffer => Buffer.of((value >> 8) & 255, value & 255)
const extension = (type: number, ...body: readonly Buffer[]): Buffer => Buffer.concat([u16(type), block(2, ...body)])

/** The extension that names a host. */
function named(name: string | Buffer, type = 0): Buffer {
  return extension(0, block(2, Buffer.of(type), block(2, Buffer.from(name))))
}

/** A name, nearly always one that another reader reads differently. */
function nameShape(dice: Dice, { all }: Names): Buffer {
  const name = dice.pick(all)
  const other = dice.pick(all)
  return dice.pick([
    () => named(name),
    () => named(name.toUpperCase()),
    () => named(`${name}.`),
    () => named(`${name}..`),
    () => Buffer.concat([named(name), named(other)]),
    () => extension(0, block(2, Buffer.of(0), block(2, Buffer.from(name)), Buffer.of(0), block(2, Buffer.from(other)))),
    () => extension(0, block(2, Buffer.of(0), block(2, Buffer.from(name))), Buffer.from(other)),
    () => extension(0, u16(name.length), Buffer.of(0), block(2, Buffer.from(name))),
    () => named(name, dice.below(256)),
    () => named(`${name}\0.${other}`),
    () => named(`${name}\0`),
    () => named(`\0${name}`),
    () => named(` ${name}`),
    () => named(Buffer.from(`${name}é`, 'utf8')),
    () => named(Buffer.from([0xff, 0xfe, ...Buffer.from(name)])),
    () => named(`*.${name.split('.').slice(1).join('.')}`),
    () => named('127.0.0.1'),
    () => named(''),
    () => named('x'.repeat(300)),
    () => named(`${'x'.repeat(64)}.${name}`),
    () => named(`${'a.'.repeat(200)}${name}`),
    () => extension(0),
    () => Buffer.alloc(0),
  ])()
}

const GREASE = [0x0a0a, 0x1a1a, 0x2a2a, 0xfafa]

/** A hello of TLS 1.2, whose answer is readable, or sometimes of another version. */
function helloMessage(dice: Dice, name: Buffer): Buffer {
  const version = dice.chance(92) ? 0x0303 : dice.pick([0x0300, 0x0301, 0x0302, 0x0304, 0x0305, 0x0200, 0x7f1c])
  const suites = [
    0xc02b,
    0xc02f,
    0xc02c,
    0xc030,
    0xcca9,
    0xcca8,
    ...(dice.chance(20) ? [0x1301, ...GREASE, 0x002f] : []),
  ]
  const more: (() => Buffer)[] = [
    () => extension(10, block(2, u16(0x001d), u16(0x0017), ...(dice.chance(20) ? GREASE.map(u16) : []))),
    () => extension(11, block(1, Buffer.of(0))),
    () => extension(13, block(2, ...[0x0403, 0x0804, 0x0401, 0x0503, 0x0601].map(u16))),
  ]
  const odd: (() => Buffer)[] = [
    () => extension(dice.pick(GREASE), Buffer.alloc(dice.below(3))),
    () => extension(16, block(2, block(1, Buffer.from('h2')), block(1, Buffer.from('http/1.1')))),
    () => extension(16, block(2, block(1, Buffer.alloc(0)))),
    () => extension(35, Buffer.alloc(dice.below(300), 7)),
    () => extension(23),
    () => extension(0xff01, Buffer.of(0)),
    () => extension(43, block(1, u16(0x0303), u16(dice.pick([0x0304, 0x0302, ...GREASE])))),
    () => extension(43, Buffer.of(3, 3, 3)),
    () => extension(21, Buffer.alloc(dice.pick([0, 100, 8000, 15_000]))),
    () => Buffer.concat(Array.from({ length: dice.pick([10, 500, 3000]) }, (_, i) => extension(0x5000 + i))),
    () => extension(51, block(2, u16(0x001d), block(2, Buffer.alloc(32, 9)))),
    () => extension(41, Buffer.alloc(40, 1)),
    () => extension(10, block(2, u16(0x0017))),
  ]
  const extras = Array.from({ length: dice.chance(50) ? dice.below(5) : 0 }, () => dice.pick(odd)())
  const extensions = [...more.map((make) => make()), ...extras]
  extensions.splice(dice.below(extensions.length + 1), 0, name)
  const body = Buffer.concat([
    u16(version),
    Buffer.from(Array.from({ length: 32 }, () => dice.below(256))),
    block(1, Buffer.alloc(dice.chance(95) ? dice.pick([0, 32]) : dice.below(256), 3)),
    block(2, ...suites.map(u16)),
    block(1, Buffer.alloc(dice.chance(97) ? 1 : dice.below(5))),
    dice.chance(98) ? block(2, ...extensions) : Buffer.concat([u16(dice.below(65_536)), ...extensions]),
  ])
  const head = Buffer.alloc(4)
  head[0] = dice.chance(98) ? 1 : dice.below(256)
  head.writeUIntBE(dice.chance(97) ? body.length : dice.pick([0, body.length - 1, body.length + 1, 0xffffff]), 1, 3)
  return Buffer.concat([head, body])
}

/** A hello of SSL 2, whose format was once used for later versions too. */
function oldHello(dice: Dice): Buffer {
  const body = Buffer.concat([Buffer.of(1, 3, dice.below(4), 0, 3, 0, 0, 0, 16, 0, 0, 10), Buffer.alloc(16, 5)])
  return Buffer.concat([Buffer.of(0x80, body.length), body])
}
