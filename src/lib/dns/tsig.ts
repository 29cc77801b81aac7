/** Signs DNS messages with a shared key, and checks the answers (TSIG, RFC 8945). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import {
  DnsReader,
  type DnsRecord,
  dnsClass,
  dnsName,
  dnsType,
  type ReadDnsMessage,
  uint16s,
  writeRecord,
} from './dns-message.ts'

export interface TsigKey {
  readonly name: string
  readonly algorithm: TsigAlgorithm
  readonly secret: Buffer
}

/** The algorithms of RFC 8945 §6 that are still recommended; the others are too weak, or truncated. */
export const tsigAlgorithms = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512'] as const
export type TsigAlgorithm = (typeof tsigAlgorithms)[number]

/** RFC 8945 §10: how much the two clocks may differ, in seconds. */
const FUDGE_S = 300

/** The content of a TSIG record. */
interface Signature {
  readonly time: number
  readonly fudge: number
  readonly mac: Buffer
  readonly originalId: number
  readonly error: number
  readonly other: Buffer
}

/** Why a signed answer is not accepted; undefined when it is. */
type TsigFault = string | undefined

interface SignedDnsMessage {
  readonly bytes: Buffer
  /** The MAC of the answer covers this one. */
  readonly mac: Buffer
}

/** Signs a message. `now` is in milliseconds since 1970; `requestMac` is for answers. */
export function signDnsMessage(message: Buffer, key: TsigKey, now: number, requestMac?: Buffer): SignedDnsMessage {
  const time = Math.floor(now / 1000)
  const unsigned = { time, fudge: FUDGE_S, error: 0, other: Buffer.alloc(0), originalId: message.readUInt16BE(0) }
  const mac = macOf(message, key, unsigned, requestMac)
  const bytes = Buffer.concat([message, writeRecord(tsigRecord(key, { ...unsigned, mac }))])
  bytes.writeUInt16BE(bytes.readUInt16BE(10) + 1, 10)
  return { bytes, mac }
}

/** Checks that a holder of the key sent `bytes`, now, as an answer to the request with `requestMac`. */
export function tsigFault(
  bytes: Buffer,
  message: ReadDnsMessage,
  { key, requestMac, now }: { key: TsigKey; requestMac?: Buffer; now: number },
): TsigFault {
  const record = message.additionals.at(-1)
  if (record?.type !== dnsType.tsig) return 'it is not signed'
  const { algorithm, ...signature } = readSignature(record)
  const reported = errors[signature.error]
  // Errors about the key itself come unsigned; since they are refusals, they can be accepted.
  if (signature.mac.length === 0) return reported ?? 'it is not signed'
  if (record.name !== key.name.toLowerCase() || algorithm !== key.algorithm) return 'it is signed with another key'
  const unsigned = Buffer.from(bytes.subarray(0, message.lastRecordAt))
  unsigned.writeUInt16BE(signature.originalId, 0)
  unsigned.writeUInt16BE(message.additionals.length - 1, 10)
  const expected = macOf(unsigned, key, signature, requestMac)
  if (signature.mac.length !== expected.length || !timingSafeEqual(signature.mac, expected)) {
    return 'its signature is wrong'
  }
  if (reported !== undefined) return reported
  if (Math.abs(now / 1000 - signature.time) > FUDGE_S + 1) return 'the time of its signature is too far from our clock'
  return undefined
}

/** RFC 8945 §3. */
const errors: Readonly<Record<number, string>> = {
  16: 'it rejects our signature: check the secret and the algorithm of the key (BADSIG)',
  17: 'it does not know the key: check its name and algorithm (BADKEY)',
  18: 'its clock and ours are too far apart (BADTIME)',
  22: 'it refuses a truncated signature (BADTRUNC)',
}

/** RFC 8945 §4.3: covers the MAC of the request, the message, and the fields of the signature. */
function macOf(
  message: Buffer,
  { name, algorithm, secret }: TsigKey,
  { time, fudge, error, other }: Omit<Signature, 'mac' | 'originalId'>,
  requestMac?: Buffer,
): Buffer {
  const hmac = createHmac(algorithm.slice('hmac-'.length), secret)
  if (requestMac) hmac.update(uint16s(requestMac.length)).update(requestMac)
  return hmac
    .update(message)
    .update(dnsName(name))
    .update(uint16s(dnsClass.any, 0, 0))
    .update(dnsName(algorithm))
    .update(uint48(time))
    .update(uint16s(fudge, error, other.length))
    .update(other)
    .digest()
}

function tsigRecord({ name, algorithm }: TsigKey, signature: Signature): DnsRecord {
  const { time, fudge, mac, originalId, error, other } = signature
  const data = Buffer.concat([
    dnsName(algorithm),
    uint48(time),
    uint16s(fudge, mac.length),
    mac,
    uint16s(originalId, error, other.length),
    other,
  ])
  return { name, type: dnsType.tsig, class: dnsClass.any, ttl: 0, data }
}

function readSignature({ data }: DnsRecord): Signature & { readonly algorithm: string } {
  const reader = new DnsReader(data)
  const algorithm = reader.name()
  const time = reader.uint16() * 2 ** 32 + reader.uint32()
  const fudge = reader.uint16()
  const mac = reader.take(reader.uint16())
  const [originalId, error] = [reader.uint16(), reader.uint16()]
  return { algorithm, time, fudge, mac, originalId, error, other: reader.take(reader.uint16()) }
}

function uint48(value: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(value, 0, 6)
  return bytes
}
