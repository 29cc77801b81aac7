/** Reads the hello that begins a TLS connection, as its bytes come in: the requested name, and what the client offers. */
import { BadInput } from '../../lib/shape/bad-input.ts'

export interface ClientHello {
  /** Normalised: lower case, without a trailing dot; empty when none was sent. */
  readonly serverName: string
  /** Application protocols in the visitor's order. */
  readonly alpn: readonly string[]
  /** As on the wire, such as 0x0304 for TLS 1.3, in the visitor's order. */
  readonly versions: readonly number[]
}

/** `bad_name`: a name that no host can have. `plain_http`: HTTP without TLS. */
export type HelloFault = 'not_tls' | 'plain_http' | 'malformed' | 'bad_name' | 'too_large'

/** Largest hello, in bytes, record headers included; real ones have 200 to 2,000. */
export const MAX_HELLO_BYTES = 16 * 1024

const RECORD_HEAD_BYTES = 5
const MESSAGE_HEAD_BYTES = 4
const HANDSHAKE = 22
const CLIENT_HELLO = 1
/** RFC 8446 §5.1. */
const MAX_FRAGMENT_BYTES = 16 * 1024

const NOTHING: Buffer = Buffer.alloc(0)

/**
 * Collects one hello, across as many records and chunks as it takes.
 *
 * Written by hand: Node shows the name only to a server that has begun the handshake, and here the name decides which server
 * begins it.
 */
export class HelloReader {
  /** The bytes so far, in the first `#length` bytes of a larger buffer. */
  #bytes = NOTHING
  #length = 0
  /** Where the next record begins. */
  #at = 0
  /** The contents of all records before that one. */
  #fragments: Buffer[] = []
  #payload = 0
  /** Length of the message, its header included. */
  #expected: number | undefined

  /** Everything that was pushed. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Adds the next bytes; returns the hello once it is complete, its fault, or undefined while more is needed. */
  push(chunk: Buffer): ClientHello | HelloFault | undefined {
    if (chunk.length === 0) return undefined
    this.#append(chunk)
    return this.#bytes[0] === HANDSHAKE ? this.#readRecords() : otherProtocol(this.bytes)
  }

  #append(chunk: Buffer): void {
    const total = this.#length + chunk.length
    if (this.#length === 0) {
      this.#bytes = chunk
    } else {
      // Doubles each time, so that bytes that arrive one by one are not copied over and over.
      if (total > this.#bytes.length) this.#bytes = Buffer.concat([this.bytes], total * 2)
      chunk.copy(this.#bytes, this.#length)
    }
    this.#length = total
  }

  #readRecords(): ClientHello | HelloFault | undefined {
    const bytes = this.#bytes
    const length = this.#length
    for (;;) {
      const start = this.#at + RECORD_HEAD_BYTES
      if (length > this.#at && bytes[this.#at] !== HANDSHAKE) return 'malformed'
      if (length > this.#at + 1 && bytes[this.#at + 1] !== 3) return this.#at === 0 ? 'not_tls' : 'malformed'
      if (start > MAX_HELLO_BYTES) return 'too_large'
      if (length < start) return undefined
      const size = bytes.readUInt16BE(start - 2)
      if (size === 0 || size > MAX_FRAGMENT_BYTES) return 'malformed'
      if (start + size > MAX_HELLO_BYTES) return 'too_large'
      if (length < start + size) return undefined
      this.#at = start + size
      this.#payload += size
      this.#fragments.push(bytes.subarray(start, this.#at))
      const result = this.#readMessage()
      if (result !== undefined) return result
    }
  }

  #readMessage(): ClientHello | HelloFault | undefined {
    if (this.#payload < MESSAGE_HEAD_BYTES) return undefined
    if (this.#expected === undefined) {
      const head = joinFragments(this.#fragments)
      if (head[0] !== CLIENT_HELLO) return 'malformed'
      this.#expected = MESSAGE_HEAD_BYTES + head.readUIntBE(1, 3)
      if (this.#expected > MAX_HELLO_BYTES) return 'too_large'
    }
    if (this.#payload < this.#expected) return undefined
    // Nothing may follow the hello in its record: a client sends nothing else before the answer.
    if (this.#payload > this.#expected) return 'malformed'
    return parseHello(new Cursor(joinFragments(this.#fragments), MESSAGE_HEAD_BYTES))
  }
}

function joinFragments(fragments: readonly Buffer[]): Buffer {
  const [only] = fragments
  return fragments.length === 1 && only ? only : Buffer.concat(fragments)
}

/** The longest HTTP method that is recognised, with the space after it. */
const METHOD_BYTES = 'OPTIONS '.length

function otherProtocol(bytes: Buffer): HelloFault | undefined {
  const start = bytes.toString('latin1', 0, METHOD_BYTES)
  if (/^[A-Z]{3,7} /.test(start)) return 'plain_http'
  return start.length < METHOD_BYTES && /^[A-Z]+$/.test(start) ? undefined : 'not_tls'
}

function parseHello(hello: Cursor): ClientHello | HelloFault {
  try {
    return readHello(hello)
  } catch (error) {
    if (error instanceof BadInput) return 'malformed'
    throw error
  }
}

/** RFC 8446 §4.1.2, which hellos of older versions fit as well. */
function readHello(hello: Cursor): ClientHello | HelloFault {
  let serverName: string | undefined
  let alpn: string[] | undefined
  let versions: number[] | undefined
  const legacyVersion = hello.u16()
  hello.skip(RANDOM_BYTES)
  hello.skip(hello.u8())
  hello.skip(hello.u16())
  hello.skip(hello.u8())
  if (hello.at < hello.end) check(hello.u16() === hello.end - hello.at)
  while (hello.at < hello.end) {
    const type = hello.u16()
    const length = hello.u16()
    const end = hello.at + length
    check(end <= hello.end)
    // RFC 8446 §4.2: no extension may appear twice. With two names, we and OpenSSL could each read a different one.
    if (type === extension.serverName) {
      check(serverName === undefined)
      serverName = readServerName(hello, end)
    } else if (type === extension.alpn) {
      check(alpn === undefined)
      alpn = readAlpn(hello, end)
    } else if (type === extension.versions) {
      check(versions === undefined)
      versions = readVersions(hello, end)
    }
    hello.at = end
  }
  if (serverName === BAD_NAME) return 'bad_name'
  return { serverName: serverName ?? '', alpn: alpn ?? [], versions: versions ?? [legacyVersion] }
}

const RANDOM_BYTES = 32

const extension = { serverName: 0, alpn: 16, versions: 43 } as const

/** Any name that no host can have. */
const BAD_NAME = '*'

/** Host names have no underscores, but people use them all the same. */
const SERVER_NAME = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/

/** RFC 1035 §2.3.4, without the dot at the end. */
const MAX_NAME = 253

/** RFC 6066 §3; like OpenSSL, we accept exactly one name. */
function readServerName(hello: Cursor, end: number): string {
  check(hello.u16() === end - hello.at)
  const type = hello.u8()
  check(hello.u16() === end - hello.at)
  const name = normalServerName(hello.text(end))
  return type === 0 && name.length <= MAX_NAME && SERVER_NAME.test(name) ? name : BAD_NAME
}

/** A name as visitors send it, in the one spelling that is compared. */
export function normalServerName(name: string): string {
  const lower = name.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** RFC 7301 §3.1. */
function readAlpn(hello: Cursor, end: number): string[] {
  const protocols: string[] = []
  check(hello.u16() === end - hello.at && hello.at < end)
  while (hello.at < end) {
    const next = hello.u8() + hello.at
    check(next > hello.at && next <= end)
    protocols.push(hello.text(next))
  }
  return protocols
}

/** RFC 8446 §4.2.1. */
function readVersions(hello: Cursor, end: number): number[] {
  const versions: number[] = []
  const length = hello.u8()
  check(length === end - hello.at && length > 0 && length % 2 === 0)
  while (hello.at < end) {
    const version = hello.u16()
    // RFC 8701: random values that clients send to keep servers tolerant.
    if ((version & 0x0f0f) !== 0x0a0a) versions.push(version)
  }
  return versions
}

function check(holds: boolean): void {
  if (!holds) throw new BadInput('this is not a client hello')
}

/** Reads forward without copying; throws `BadInput` when the bytes end early. */
class Cursor {
  readonly #bytes: Buffer
  readonly end: number
  at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
    this.end = bytes.length
  }

  skip(size: number): void {
    this.at += size
    check(this.at <= this.end)
  }

  u8(): number {
    const at = this.at
    this.skip(1)
    return this.#bytes[at] ?? 0
  }

  u16(): number {
    return this.u8() * 256 + this.u8()
  }

  /** The bytes from here to `end`, one character each. */
  text(end: number): string {
    const start = this.at
    this.skip(end - start)
    return this.#bytes.toString('latin1', start, end)
  }
}
