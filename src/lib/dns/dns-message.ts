/** Reads and writes DNS messages (RFC 1035 §4), as far as a client that looks up and updates records needs them. */

interface DnsQuestion {
  /** Lower case, without a dot at its end; empty for the root. */
  readonly name: string
  readonly type: number
  readonly class: number
}

export interface DnsRecord extends DnsQuestion {
  readonly ttl: number
  readonly data: Buffer
}

interface DnsMessage {
  readonly id: number
  readonly isAnswer: boolean
  readonly opcode: number
  readonly isTruncated: boolean
  readonly rcode: number
  readonly questions: readonly DnsQuestion[]
  readonly answers: readonly DnsRecord[]
  readonly authorities: readonly DnsRecord[]
  readonly additionals: readonly DnsRecord[]
}

export const dnsType = { ns: 2, cname: 5, soa: 6, txt: 16, tsig: 250 } as const

/** RFC 2136 §2.4, §2.5: in an update, `none` removes one record, and `any` means all. */
export const dnsClass = { in: 1, none: 254, any: 255 } as const

/** RFC 2136 §1.3: in an update the four parts are the zone, the prerequisites, the changes, and additional data. */
export const dnsOpcode = { query: 0, update: 5 } as const

/** RFC 1035 §3.1: on the wire, with the lengths of its labels. */
const MAX_NAME_BYTES = 255
const MAX_LABEL_BYTES = 63

/** The most records of one message: even a large zone has fewer name servers. */
const MAX_RECORDS = 500

const IS_ANSWER = 0x8000
const IS_TRUNCATED = 0x0200

/** The bytes are not a DNS message, or not a usable one. */
export class DnsDamage extends Error {
  override readonly name = 'DnsDamage'
}

/** Writes a message. It does not ask for recursion, since it goes to a server that has the zone. */
export function writeDnsMessage(
  message: Pick<DnsMessage, 'id' | 'opcode' | 'questions'> &
    Partial<Pick<DnsMessage, 'isAnswer' | 'isTruncated' | 'rcode' | 'answers' | 'authorities' | 'additionals'>>,
): Buffer {
  const { id, opcode, questions, isAnswer = false, isTruncated = false, rcode = 0 } = message
  const { answers = [], authorities = [], additionals = [] } = message
  const flags = (isAnswer ? IS_ANSWER : 0) | (opcode << 11) | (isTruncated ? IS_TRUNCATED : 0) | rcode
  const counts = [questions, answers, authorities, additionals].map(({ length }) => length)
  return Buffer.concat([
    uint16s(id, flags, ...counts),
    ...questions.map((each) => Buffer.concat([dnsName(each.name), uint16s(each.type, each.class)])),
    ...[...answers, ...authorities, ...additionals].map(writeRecord),
  ])
}

export function writeRecord({ name, type, class: of, ttl, data }: DnsRecord): Buffer {
  const life = Buffer.alloc(4)
  life.writeUInt32BE(ttl)
  return Buffer.concat([dnsName(name), uint16s(type, of), life, uint16s(data.length), data])
}

/** A name on the wire, in lower case and without compression, as it must be for signing (RFC 8945 §4.3.3). */
export function dnsName(name: string): Buffer {
  const labels = name === '' ? [] : name.toLowerCase().split('.')
  const parts = labels.map((label) => {
    const bytes = Buffer.from(label, 'latin1')
    if (bytes.length === 0 || bytes.length > MAX_LABEL_BYTES) throw new DnsDamage(`not a DNS name: ${name}`)
    return Buffer.concat([Buffer.of(bytes.length), bytes])
  })
  const written = Buffer.concat([...parts, Buffer.of(0)])
  if (written.length > MAX_NAME_BYTES) throw new DnsDamage(`too long for a DNS name: ${name}`)
  return written
}

export function uint16s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, at * 2)
  return bytes
}

/** The data of a TXT record with one text of at most 255 bytes. */
export function txtData(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

/** The text of a TXT record: its parts, joined. */
export function readTxt(data: Buffer): string {
  const reader = new DnsReader(data)
  let text = ''
  while (!reader.isAtEnd) text += reader.take(reader.uint8()).toString('latin1')
  return text
}

export interface ReadDnsMessage extends DnsMessage {
  /** Where the last record begins; in a signed message that is the signature. */
  readonly lastRecordAt: number
  /** The names in the data of NS and CNAME records, by record. */
  readonly targets: ReadonlyMap<DnsRecord, string>
}

/**
 * Throws `DnsDamage` on anything that is not exactly one message.
 *
 * Written by hand: maintained libraries neither sign messages nor keep their original bytes, without which a signature
 * cannot be checked.
 */
export function readDnsMessage(bytes: Buffer): ReadDnsMessage {
  const reader = new DnsReader(bytes)
  const [id, flags] = [reader.uint16(), reader.uint16()]
  const counts = [reader.uint16(), reader.uint16(), reader.uint16(), reader.uint16()] as const
  if (counts.reduce((sum, each) => sum + each) > MAX_RECORDS) throw new DnsDamage('too many records')
  const targets = new Map<DnsRecord, string>()
  let lastRecordAt = bytes.length
  const question = (): DnsQuestion => ({ name: reader.name(), type: reader.uint16(), class: reader.uint16() })
  const record = (): DnsRecord => {
    lastRecordAt = reader.at
    const asked = question()
    const ttl = reader.uint32()
    const length = reader.uint16()
    const dataAt = reader.at
    const read = { ...asked, ttl, data: reader.take(length) }
    // Their names may be compressed with references to the whole message.
    if (read.type === dnsType.ns || read.type === dnsType.cname) {
      targets.set(read, new DnsReader(bytes.subarray(0, dataAt + length), dataAt).name())
    }
    return read
  }
  const several = <T>(count: number, read: () => T): T[] => Array.from({ length: count }, read)
  const message = {
    id,
    isAnswer: (flags & IS_ANSWER) !== 0,
    opcode: (flags >> 11) & 0xf,
    isTruncated: (flags & IS_TRUNCATED) !== 0,
    rcode: flags & 0xf,
    questions: several(counts[0], question),
    answers: several(counts[1], record),
    authorities: several(counts[2], record),
    additionals: several(counts[3], record),
  }
  if (!reader.isAtEnd) throw new DnsDamage('bytes after the message')
  return { ...message, lastRecordAt, targets }
}

/** Reads one part after another; reading beyond the end throws `DnsDamage`. */
export class DnsReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes
    this.#at = at
  }

  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  uint8(): number {
    return this.take(1).readUInt8(0)
  }

  uint16(): number {
    return this.take(2).readUInt16BE(0)
  }

  uint32(): number {
    return this.take(4).readUInt32BE(0)
  }

  take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new DnsDamage('the message ends too early')
    const taken = this.#bytes.subarray(this.#at, this.#at + length)
    this.#at += length
    return taken
  }

  /** RFC 1035 §4.1.4: each part is a label, or a reference to the rest of the name elsewhere in the message. */
  name(): string {
    const labels: string[] = []
    let length = 1
    let at = this.#at
    let end: number | undefined
    for (;;) {
      const size = this.#byte(at)
      if (size >= 0xc0) {
        const target = ((size & 0x3f) << 8) | this.#byte(at + 1)
        end ??= at + 2
        // Only backwards, so that there is no loop.
        if (target >= at) throw new DnsDamage('a name that refers to itself')
        at = target
        continue
      }
      if (size > MAX_LABEL_BYTES) throw new DnsDamage('a label of an unknown kind')
      length += size + (size > 0 ? 1 : 0)
      if (length > MAX_NAME_BYTES) throw new DnsDamage('a name that is too long')
      if (size === 0) break
      const label = this.#bytes.subarray(at + 1, at + 1 + size).toString('latin1')
      if (label.length !== size) throw new DnsDamage('the message ends too early')
      // In the text of the name, such a label would look like two.
      if (label.includes('.')) throw new DnsDamage('a dot inside a label')
      labels.push(label.toLowerCase())
      at += size + 1
    }
    this.#at = end ?? at + 1
    return labels.join('.')
  }

  #byte(at: number): number {
    const byte = this.#bytes[at]
    if (byte === undefined) throw new DnsDamage('the message ends too early')
    return byte
  }
}
