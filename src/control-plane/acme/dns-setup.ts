/** Chooses how DNS records are set, from the settings. */
import type { Clock } from '../../lib/clock.ts'
import type { TsigAlgorithm } from '../../lib/dns/tsig.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import { dnsCommand } from './dns-command.ts'
import type { DnsRecords } from './dns-records.ts'
import { dnsUpdate } from './dns-update.ts'

export interface DnsSetup {
  /** An executable that sets DNS records. */
  readonly dnsCommand: string | null
  /** A name server that accepts updates signed with the key. */
  readonly dnsServer: { readonly host: string; readonly port: number } | null
  readonly dnsKey: { readonly name: string; readonly algorithm: TsigAlgorithm; readonly secret: Secret } | null
}

/** Undefined if neither is set. */
export function dnsRecordsBy(
  { dnsCommand: command, dnsServer: server, dnsKey: key }: DnsSetup,
  { env, now }: { env: Readonly<Record<string, string | undefined>>; now: Clock },
): DnsRecords | undefined {
  if (server && key) {
    return dnsUpdate({ server, key: { ...key, secret: Buffer.from(key.secret.reveal(), 'base64') }, now })
  }
  if (server) return keyless
  return command === null ? undefined : dnsCommand({ command, env })
}

/** Fails for each name, so that the missing key is reported there. */
const keyless: DnsRecords = {
  present: async () => {
    throw new Error('`--acme-dns-server` needs its key in `POSTERN_ACME_DNS_KEY`.')
  },
  cleanup: async () => {},
}
