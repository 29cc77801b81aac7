/** Reads records from one DNS server and changes them (RFC 2136), with every message and answer signed. */
import { randomInt } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { type DnsExchangeLimits, type DnsServerAddress, exchangeDns } from './dns-exchange.ts'
import {
  DnsDamage,
  type DnsRecord,
  dnsClass,
  dnsOpcode,
  dnsType,
  type ReadDnsMessage,
  readDnsMessage,
  writeDnsMessage,
} from './dns-message.ts'
import { signDnsMessage, type TsigKey, tsigFault } from './tsig.ts'

export interface DnsClientOptions {
  readonly server: DnsServerAddress
  /** Without it nothing is signed, which is enough for reading. */
  readonly key?: TsigKey
  readonly now: Clock
  readonly limits?: DnsExchangeLimits
}

export type DnsClient = ReturnType<typeof dnsClient>

/** Why a server did not do what was asked. */
export class DnsFault extends Error {
  override readonly name = 'DnsFault'
}

/** RFC 1035 §4.1.1, RFC 2136 §2.2. */
const rcodes: Readonly<Record<number, string>> = {
  1: 'it does not understand the request (FORMERR)',
  2: 'it failed (SERVFAIL)',
  3: 'there is no such name (NXDOMAIN)',
  4: 'it does not support this (NOTIMP)',
  5: 'it refuses: the key may not change this record (REFUSED)',
  6: 'a name exists that should not exist (YXDOMAIN)',
  7: 'a record exists that should not exist (YXRRSET)',
  8: 'a record that should exist does not (NXRRSET)',
  9: 'it is not authoritative for the zone, or refuses the key (NOTAUTH)',
  10: 'the record is not in the zone (NOTZONE)',
}

const NO_SUCH_NAME = 3

export function dnsClient({ server, key, now, limits }: DnsClientOptions) {
  /** Sends a request; resolves with an answer that is signed with the same key and matches the request. */
  const ask = async (request: Parameters<typeof writeDnsMessage>[0]): Promise<ReadDnsMessage> => {
    const plain = writeDnsMessage(request)
    const signed = key ? signDnsMessage(plain, key, now()) : { bytes: plain, mac: undefined }
    const bytes = await exchangeDns(server, signed.bytes, limits).catch((cause: unknown) => {
      throw new DnsFault(`cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    })
    const answer = readAnswer(bytes)
    if (key && signed.mac) {
      const fault = tsigFault(bytes, answer, { key, requestMac: signed.mac, now: now() })
      // A refusal may come unsigned; success counts only with a signature.
      if (fault !== undefined) throw new DnsFault(answer.rcode === 0 ? fault : `${inWords(answer.rcode)}; ${fault}`)
    }
    if (answer.opcode !== request.opcode) throw new DnsFault('its answer does not match the request')
    return answer
  }

  return {
    /** The server's answer for a name and a type; that the name does not exist is an answer too. */
    async look(name: string, type: number): Promise<ReadDnsMessage> {
      const questions = [{ name, type, class: dnsClass.in }]
      const answer = await ask({ id: randomInt(0x10000), opcode: dnsOpcode.query, questions })
      const [asked] = answer.questions
      if (asked?.name !== name.toLowerCase() || asked.type !== type)
        throw new DnsFault('its answer does not match the request')
      if (answer.rcode !== 0 && answer.rcode !== NO_SUCH_NAME) throw new DnsFault(inWords(answer.rcode))
      return answer
    },
    /** Changes a zone. */
    async update(zone: string, changes: readonly DnsRecord[]): Promise<void> {
      const questions = [{ name: zone, type: dnsType.soa, class: dnsClass.in }]
      const answer = await ask({ id: randomInt(0x10000), opcode: dnsOpcode.update, questions, authorities: changes })
      if (answer.rcode !== 0) throw new DnsFault(inWords(answer.rcode))
    },
  }
}

function readAnswer(bytes: Buffer): ReadDnsMessage {
  try {
    return readDnsMessage(bytes)
  } catch (cause) {
    if (!(cause instanceof DnsDamage)) throw cause
    throw new DnsFault(`its answer cannot be read: ${cause.message}`, { cause })
  }
}

function inWords(rcode: number): string {
  return rcodes[rcode] ?? `it answered with code ${rcode}`
}
