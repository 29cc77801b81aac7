/** Sets DNS records through updates of a name server (RFC 2136), signed with a key (TSIG). */
import { lookup } from 'node:dns/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type DnsClient, type DnsClientOptions, DnsFault, dnsClient } from '../../lib/dns/dns-client.ts'
import type { DnsExchangeLimits, DnsServerAddress } from '../../lib/dns/dns-exchange.ts'
import { type DnsRecord, dnsClass, dnsType, readTxt, txtData } from '../../lib/dns/dns-message.ts'
import type { TsigKey } from '../../lib/dns/tsig.ts'
import type { DnsRecords } from './dns-records.ts'

export interface DnsUpdateOptions extends Pick<DnsClientOptions, 'server' | 'now' | 'limits'> {
  readonly key: TsigKey
  /** The addresses of a name server. */
  readonly addressesOf?: (nameServer: string) => Promise<readonly DnsServerAddress[]>
  /** How often the other name servers are asked. */
  readonly looks?: number
}

/** How long resolvers may cache the record, in seconds. */
const TTL_S = 60

/** How often the name servers of a zone are asked whether they have the record, a pause apart: a minute. */
const LOOKS = 30
const LOOK_MS = 2000

/** A name server that does not respond quickly is skipped: it may be unreachable from here. */
const LOOK_LIMITS: DnsExchangeLimits = { udpMs: [1500], tcpMs: 1500 }

/** The most name servers that are asked. */
const MAX_NAME_SERVERS = 16

export function dnsUpdate(options: DnsUpdateOptions): DnsRecords {
  const { server, key, now, limits, addressesOf = publicAddresses, looks = LOOKS } = options
  const client = dnsClient({ server, key, now, ...(limits && { limits }) })
  const explainFault = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (cause) {
      if (!(cause instanceof DnsFault)) throw cause
      throw new Error(`\`--acme-dns-server\` failed: ${cause.message}.`, { cause })
    }
  }
  const change = (record: string, value: string, { isRemoval }: { isRemoval: boolean }): DnsRecord => ({
    name: record,
    type: dnsType.txt,
    class: isRemoval ? dnsClass.none : dnsClass.in,
    ttl: isRemoval ? 0 : TTL_S,
    data: txtData(value),
  })
  return {
    async present(record, value) {
      const zone = await explainFault(zoneOf(client, record))
      await explainFault(client.update(zone, [change(record, value, { isRemoval: false })]))
      const others = await explainFault(nameServersOf(client, zone))
      // All name servers of the zone must have the record, since the authority may ask any of them.
      await untilSeen(others, record, value, { now, addressesOf, looks })
    },
    async cleanup(record, value) {
      const zone = await explainFault(zoneOf(client, record))
      // Only this value: another order may prove the same name.
      await explainFault(client.update(zone, [change(record, value, { isRemoval: true })]))
    },
  }
}

/** The zone of a record, according to the server: the record's own name or one above it. */
async function zoneOf(client: DnsClient, record: string): Promise<string> {
  for (let name = record; name.includes('.'); name = name.slice(name.indexOf('.') + 1)) {
    const { answers, authorities } = await client.look(name, dnsType.soa)
    const zone = [...answers, ...authorities].find((each) => each.type === dnsType.soa && isWithin(name, each.name))
    if (zone) return zone.name
  }
  throw new DnsFault(`it has no zone for ${record}`)
}

function isWithin(name: string, zone: string): boolean {
  return zone !== '' && (name === zone || name.endsWith(`.${zone}`))
}

async function nameServersOf(client: DnsClient, zone: string): Promise<string[]> {
  const { answers, targets } = await client.look(zone, dnsType.ns)
  const all = answers.filter(({ type }) => type === dnsType.ns).flatMap((each) => targets.get(each) ?? [])
  return [...new Set(all)].slice(0, MAX_NAME_SERVERS)
}

/**
 * Waits until each name server has the record. One that cannot be reached from here is skipped. After the last look the
 * order goes on anyway, since only the authority knows what it sees.
 */
async function untilSeen(
  others: readonly string[],
  record: string,
  value: string,
  { now, addressesOf, looks }: Required<Pick<DnsUpdateOptions, 'now' | 'addressesOf' | 'looks'>>,
): Promise<void> {
  const lacks = async (server: DnsServerAddress): Promise<boolean> => {
    try {
      const { answers } = await dnsClient({ server, now, limits: LOOK_LIMITS }).look(record, dnsType.txt)
      return !answers.some(({ type, data }) => type === dnsType.txt && readTxt(data) === value)
    } catch {
      return false
    }
  }
  let left = (await Promise.all(others.map(addressesOf))).flat()
  for (let look = 0; look < looks; look++) {
    const lacking = await Promise.all(left.map(lacks))
    left = left.filter((_, at) => lacking[at])
    if (left.length === 0) return
    await pause(LOOK_MS)
  }
}

const DNS_PORT = 53

/** Empty for a name that does not resolve. */
async function publicAddresses(nameServer: string): Promise<DnsServerAddress[]> {
  const found = await lookup(nameServer, { all: true }).catch(() => [])
  return found.map(({ address }) => ({ host: address, port: DNS_PORT }))
}
