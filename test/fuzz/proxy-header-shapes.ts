/** PROXY headers, valid and invalid in one or more ways, from one seed; and a strict reader without any of our code. */
import { isIPv4, isIPv6 } from 'node:net'
import type { Dice } from './smuggling-shapes.ts'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** The longest line of version 1, and the longest accepted rest of version 2; both are documented bounds. */
const LINE_BYTES = 107
const SIGNED_BYTES = 4096

/** How a receiver must read the bytes that a hop sent, when it has all of them. */
export type Reading =
  | { readonly is: 'visitor'; readonly ip: string; readonly rest: Buffer }
  /** The hop speaks for itself, or names no visitor. */
  | { readonly is: 'hop'; readonly rest: Buffer }
  | { readonly is: 'nothing' }

/** Reads by the PROXY protocol §2.1 and §2.2, as a receiver that drops everything else. */
export function readStrictly(bytes: Buffer): Reading {
  return bytes.subarray(0, 12).equals(SIGNATURE) ? readSigned(bytes) : readLine(bytes)
}

function readSigned(bytes: Buffer): Reading {
  if (bytes.length < 16) return { is: 'nothing' }
  const [command = 0, family = 0] = [bytes[12], bytes[13]]
  const end = 16 + bytes.readUInt16BE(14)
  if (end > 16 + SIGNED_BYTES || bytes.length < end) return { is: 'nothing' }
  const rest = bytes.subarray(end)
  if (command === 0x20) return { is: 'hop', rest }
  if (command !== 0x21) return { is: 'nothing' }
  const body = bytes.subarray(16, end)
  if (family === 0x11) return body.length < 12 ? { is: 'nothing' } : visitor(dotted(body.subarray(0, 4)), rest)
  if (family === 0x21) return body.length < 36 ? { is: 'nothing' } : visitor(coloned(body.subarray(0, 16)), rest)
  // Unspecified, UDP and UNIX sockets are valid families, but name no visitor over TCP.
  return [0x00, 0x12, 0x22, 0x31, 0x32].includes(family) ? { is: 'hop', rest } : { is: 'nothing' }
}

function readLine(bytes: Buffer): Reading {
  const end = bytes.indexOf('\r\n')
  if (end < 0 || end + 2 > LINE_BYTES) return { is: 'nothing' }
  const rest = bytes.subarray(end + 2)
  const words = bytes.toString('latin1', 0, end).split(' ')
  if (words[0] !== 'PROXY') return { is: 'nothing' }
  if (words[1] === 'UNKNOWN') return { is: 'hop', rest }
  const [, family, source = '', destination = '', port = '', serverPort = ''] = words
  const isFamily = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : () => false
  if (words.length !== 6 || ![source, destination].every((each) => isFamily(each) && !each.includes('%'))) {
    return { is: 'nothing' }
  }
  if (![port, serverPort].every((each) => /^(0|[1-9]\d*)$/.test(each) && Number(each) < 65_536))
    return { is: 'nothing' }
  return visitor(family === 'TCP6' ? shortest(source) : source, rest)
}

function visitor(ip: string, rest: Buffer): Reading {
  return { is: 'visitor', ip, rest }
}

function dotted(bytes: Buffer): string {
  return bytes.join('.')
}

function coloned(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  return shortest(groups.join(':'))
}

/** The address as WHATWG writes it, which is RFC 5952; IPv4 inside IPv6 is IPv4. */
function shortest(ip: string): string {
  const text = new URL(`http://[${ip}]`).hostname.slice(1, -1)
  const [, high = '', low = ''] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(text) ?? []
  if (high === '') return text
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
  return [a >> 8, a & 255, b >> 8, b & 255].join('.')
}

/** A header, nearly always a hostile one. `id` makes the visitor's address unique. */
export function headerShape(dice: Dice, id: number): Buffer {
  const base = dice.chance(50) ? lineShape(dice, id) : signedShape(dice, id)
  if (dice.chance(45)) return base
  let bytes: Buffer = Buffer.from(base)
  for (let changes = 1 + dice.below(3); changes > 0; changes--) bytes = changed(bytes, dice)
  return bytes
}

/** The bytes with one small change. */
function changed(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(bytes.length + 1)
  const before = bytes.subarray(0, at)
  switch (dice.below(6)) {
    case 0:
      return before
    case 1:
      return Buffer.concat([before, Buffer.of(dice.below(256)), bytes.subarray(at + 1)])
    case 2:
      return Buffer.concat([before, Buffer.of(dice.below(256)), bytes.subarray(at)])
    case 3:
      return Buffer.concat([before, bytes.subarray(at + 1 + dice.below(4))])
    case 4:
      return Buffer.concat([
        before,
        Buffer.from(dice.pick(['\r\n', '\n', ' ', '\0', '\t', 'PROXY ', '::', '.'])),
        bytes.subarray(at),
      ])
    default:
      return Buffer.concat([bytes, bytes])
  }
}

function address4(id: number): string {
  return `10.${(id >> 16) & 255}.${(id >> 8) & 255}.${id & 255}`
}

function address6(id: number, dice: Dice): string {
  const tail = `${((id >> 16) & 0xffff).toString(16)}:${(id & 0xffff).toString(16)}`
  return dice.pick([`2001:db8::${tail}`, `2001:DB8:0:0:0:0:${tail}`, `::ffff:${address4(id)}`, `2001:db8::1:${tail}`])
}

function lineShape(dice: Dice, id: number): Buffer {
  const isIPv6 = dice.chance(40)
  const ip = isIPv6 ? address6(id, dice) : address4(id)
  const fields = [
    dice.chance(92) ? 'PROXY' : dice.pick(['proxy', 'PROXY2', 'PROX', '', 'GET', '\rPROXY']),
    dice.chance(85)
      ? isIPv6
        ? 'TCP6'
        : 'TCP4'
      : dice.pick(['TCP4', 'TCP6', 'UNKNOWN', 'UDP4', 'tcp4', 'TCP', 'UNKNOWNX', '']),
    dice.chance(85)
      ? ip
      : dice.pick(['1.2.3', '1.2.3.256', '01.2.3.4', '::1%lo', '1.2.3.4.5', 'localhost', '', '::g', '[::1]', '0x7f.1']),
    dice.chance(90) ? (isIPv6 ? '2001:db8::ffff' : '192.0.2.1') : dice.pick(['::1', '127.0.0.1', 'x', '']),
    port(dice),
    port(dice),
    ...(dice.chance(6) ? [dice.pick(['more', '', 'x'.repeat(120)])] : []),
  ]
  const gap = dice.chance(94) ? ' ' : dice.pick(['  ', '\t', ',', ''])
  const end = dice.chance(92) ? '\r\n' : dice.pick(['\n', '\r', '', '\r\r\n', ' \r\n', '\0\r\n'])
  const kept = dice.chance(95) ? fields : fields.slice(0, dice.below(fields.length))
  return Buffer.from(kept.join(gap) + end, 'latin1')
}

function port(dice: Dice): string {
  if (dice.chance(85)) return String(dice.below(65_536))
  return dice.pick(['0', '65535', '65536', '99999', '-1', '+1', '080', '1e3', '', '1.0', '123456', ' 1'])
}

function signedShape(dice: Dice, id: number): Buffer {
  const family = dice.chance(75)
    ? dice.pick([0x11, 0x21])
    : dice.pick([0x00, 0x12, 0x22, 0x31, 0x32, 0x10, 0x13, 0x20, 0x41, 0xff])
  const command = dice.chance(85) ? 0x21 : dice.pick([0x20, 0x22, 0x2f, 0x11, 0x31, 0x01, 0x00])
  const addresses = family >> 4 === 2 ? bytes6(id) : family >> 4 === 3 ? Buffer.alloc(216, 'x') : bytes4(id)
  const tlvs = Buffer.concat(Array.from({ length: dice.chance(40) ? dice.below(6) : 0 }, () => tlv(dice)))
  const body = Buffer.concat([addresses, tlvs])
  const cut = dice.chance(90) ? body : body.subarray(0, dice.below(body.length + 1))
  const length = dice.chance(88)
    ? cut.length
    : dice.pick([0, 1, 11, 12, 35, 36, cut.length + 1, cut.length - 1, 4096, 4097, 65_535])
  const head = Buffer.alloc(4)
  head[0] = command
  head[1] = family
  head.writeUInt16BE(Math.max(0, length) & 0xffff, 2)
  return Buffer.concat([SIGNATURE, head, cut])
}

function bytes4(id: number): Buffer {
  return Buffer.from([10, (id >> 16) & 255, (id >> 8) & 255, id & 255, 192, 0, 2, 1, 15, 160, 1, 187])
}

function bytes6(id: number): Buffer {
  const source = Buffer.from('20010db8000000000000000000000000', 'hex')
  source.writeUInt32BE(id >>> 0, 12)
  return Buffer.concat([source, Buffer.from('20010db80000000000000000ffffffff', 'hex'), Buffer.of(15, 160, 1, 187)])
}

/** A TLV with a known or unknown type, and a right or wrong length. */
function tlv(dice: Dice): Buffer {
  const value = Buffer.alloc(dice.chance(90) ? dice.below(64) : dice.below(5000), dice.below(256))
  const head = Buffer.alloc(3)
  head[0] = dice.pick([0x01, 0x02, 0x03, 0x04, 0x05, 0x20, 0x30, 0xe0, 0xff, 0x00])
  head.writeUInt16BE(dice.chance(85) ? value.length : dice.below(65_536), 1)
  return Buffer.concat([head, value])
}
