/** The PROXY protocol, versions 1 and 2: writes and reads the header that precedes a connection and names its visitor. */
import { asIPv6, ipBytes, ipText } from './ip-bytes.ts'
import type { Peer } from './peer.ts'

/** The two ends of a visitor's connection. */
export type Ends = Pick<Peer, 'ip' | 'port' | 'serverIp' | 'serverPort'>

/** PROXY protocol §2.2: begins a version 2 header; no HTTP, TLS or version 1 header can begin like this. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const SIGNED_HEAD_BYTES = 16
/** PROXY protocol §2.1: the longest line of version 1, including its line break. */
const MAX_LINE_BYTES = 107
/** The longest body of a version 2 header that we read, in bytes: the addresses and some certificate fields. */
const MAX_SIGNED_BYTES = 4096
const IPV4_BYTES = 4
const IPV6_BYTES = 16

/** PROXY protocol §2.2: address length by family; 0 for families that name no TCP visitor. */
const addressBytes: ReadonlyMap<number, number> = new Map([
  [0x00, 0],
  [0x11, IPV4_BYTES],
  [0x12, 0],
  [0x21, IPV6_BYTES],
  [0x22, 0],
  [0x31, 0],
  [0x32, 0],
])

/** The header with both ends of a visitor's connection. */
export function proxyHeaderOf(version: 1 | 2, ends: Ends): Buffer {
  const { source, destination } = addressesOf(ends)
  if (version === 1) return Buffer.from(buildLine(source, destination, ends), 'latin1')
  if (!source || !destination) return signedHead(0, 0)
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(ends.port, 0)
  ports.writeUInt16BE(ends.serverPort, 2)
  const rest = Buffer.concat([source, destination, ports])
  return Buffer.concat([signedHead(source.length === IPV4_BYTES ? 0x11 : 0x21, rest.length), rest])
}

function buildLine(source: Buffer | undefined, destination: Buffer | undefined, { port, serverPort }: Ends): string {
  if (!source || !destination) return 'PROXY UNKNOWN\r\n'
  if (source.length === IPV4_BYTES)
    return `PROXY TCP4 ${ipText(source)} ${ipText(destination)} ${port} ${serverPort}\r\n`
  return `PROXY TCP6 ${writtenIPv6(source)} ${writtenIPv6(destination)} ${port} ${serverPort}\r\n`
}

/** Both addresses in one family: if they differ, the IPv4 one becomes IPv4-mapped. */
function addressesOf({ ip, serverIp }: Ends): { source: Buffer | undefined; destination: Buffer | undefined } {
  const source = ipBytes(ip)
  const destination = ipBytes(serverIp)
  if (!source || !destination || source.length === destination.length) return { source, destination }
  return { source: asIPv6(source), destination: asIPv6(destination) }
}

/** `ipText` writes an IPv4-mapped address as IPv4, which is not allowed in a TCP6 line. */
function writtenIPv6(bytes: Buffer): string {
  const text = ipText(bytes)
  return text.includes(':') ? text : `::ffff:${text}`
}

function signedHead(family: number, length: number): Buffer {
  const head = Buffer.alloc(SIGNED_HEAD_BYTES)
  SIGNATURE.copy(head)
  // Version 2, command PROXY.
  head[12] = 0x21
  head[13] = family
  head.writeUInt16BE(length, 14)
  return head
}

/** The result of reading a header; without `ends` the hop connects on its own behalf, or does not name the visitor. */
export interface ProxyHeaderRead {
  readonly ends: Ends | undefined
  /** Bytes of the connection itself that arrived with the header. */
  readonly rest: Buffer
}

/**
 * Reads the header that a trusted hop sends first; buffers no more than a header can have.
 *
 * Written by hand: the two formats are short, and a lenient reader would let visitors choose their own address.
 */
export class ProxyHeaderReader {
  #held: Buffer = Buffer.alloc(0)

  /** Takes the next bytes; undefined asks for more, an error means that this is not a PROXY header. */
  push(chunk: Buffer): ProxyHeaderRead | Error | undefined {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const signed = Math.min(this.#held.length, SIGNATURE.length)
    if (this.#held.subarray(0, signed).equals(SIGNATURE.subarray(0, signed))) return this.#readSigned()
    return this.#readLine()
  }

  #readSigned(): ProxyHeaderRead | Error | undefined {
    const held = this.#held
    if (held.length < SIGNED_HEAD_BYTES) return undefined
    const length = held.readUInt16BE(14)
    if (length > MAX_SIGNED_BYTES) return invalid(`it is longer than ${MAX_SIGNED_BYTES} bytes`)
    const [version = 0, family = 0] = held.subarray(12, 14)
    if (version !== 0x20 && version !== 0x21) return invalid('its version or command is unknown')
    if (held.length < SIGNED_HEAD_BYTES + length) return undefined
    const rest = held.subarray(SIGNED_HEAD_BYTES + length)
    const isLocal = version === 0x20
    const bytes = addressBytes.get(family)
    // PROXY protocol §2.2: for a LOCAL connection the family is ignored; otherwise it must be a known one.
    if (!isLocal && bytes === undefined) return invalid('its family is unknown')
    if (isLocal || bytes === undefined || bytes === 0) return { ends: undefined, rest }
    if (length < 2 * bytes + 4) return invalid('it ends within its addresses')
    const body = held.subarray(SIGNED_HEAD_BYTES)
    return {
      ends: {
        ip: ipText(body.subarray(0, bytes)),
        serverIp: ipText(body.subarray(bytes, 2 * bytes)),
        port: body.readUInt16BE(2 * bytes),
        serverPort: body.readUInt16BE(2 * bytes + 2),
      },
      rest,
    }
  }

  #readLine(): ProxyHeaderRead | Error | undefined {
    const start = this.#held.toString('latin1', 0, MAX_LINE_BYTES)
    const beginning = 'PROXY '
    if (!start.startsWith(beginning) && !beginning.startsWith(start)) return invalid('it does not begin like one')
    const end = start.indexOf('\r\n')
    if (end < 0) return start.length < MAX_LINE_BYTES ? undefined : invalid('its line is too long')
    const rest = this.#held.subarray(end + 2)
    const line = start.slice(0, end)
    if (/^PROXY UNKNOWN( |$)/.test(line)) return { ends: undefined, rest }
    const ends = readLine(line)
    return ends ? { ends, rest } : invalid('its line is malformed')
  }
}

const LINE = /^PROXY TCP([46]) ([0-9A-Fa-f.:]+) ([0-9A-Fa-f.:]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})$/

function readLine(line: string): Ends | undefined {
  const [, family, source = '', destination = '', port, serverPort] = LINE.exec(line) ?? []
  const addresses = [ipBytes(source), ipBytes(destination)] as const
  const bytes = family === '4' ? IPV4_BYTES : IPV6_BYTES
  const [from, to] = addresses
  if (from?.length !== bytes || to?.length !== bytes) return undefined
  if (Number(port) > 65_535 || Number(serverPort) > 65_535) return undefined
  return { ip: ipText(from), serverIp: ipText(to), port: Number(port), serverPort: Number(serverPort) }
}

function invalid(what: string): Error {
  return new Error(`the PROXY header cannot be read: ${what}`)
}
