/** Composes automatic certificates: which names want one, the work on orders, and the authority. */

import type { Clock } from '../../lib/clock.ts'
import type { TsigAlgorithm } from '../../lib/dns/tsig.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { type AccountOptions, AcmeAccount } from './accounts.ts'
import { CertificateOrders, type CertificateOrdersOptions } from './certificate-orders.ts'
import { dnsCommand } from './dns-command.ts'
import type { DnsRecords } from './dns-records.ts'
import { dnsUpdate } from './dns-update.ts'
import { EndpointNames, type EndpointNamesOptions } from './endpoint-names.ts'
import { ExpiredCertificates } from './expired-certificates.ts'
import { CertificateNameCounts } from './name-counts.ts'
import { NameStore } from './name-store.ts'
import { reasonOf } from './order-fault.ts'
import { HOUR_MS } from './order-pace.ts'
import { type OrderTimes, orderTimes } from './order-times.ts'
import { isOrdered, WantedNames } from './wanted-names.ts'

interface CertificatesByThemselvesOptions
  extends ControlTools,
    Pick<CertificateOrdersOptions, 'whyNotOrder' | 'isInFile' | 'showChallenge' | 'showAtOtherNodes'>,
    Pick<EndpointNamesOptions, 'domain' | 'isOnline'> {
  readonly version: string
  /** The settings of the operator. */
  readonly acme: DnsSetup &
    Pick<AccountOptions, 'directory' | 'email' | 'caFile' | 'eabKeyId' | 'eabKey'> & {
      readonly ordersPerHour: number
      /** Names of agents that get a first certificate in a week. */
      readonly endpointsPerWeek: number
    }
  /** Our environment, of which a program that sets DNS records gets a part. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Names of the server itself, which get certificates too. */
  readonly ownNames: readonly string[]
  /** Shorter ones are for tests. */
  readonly orderTimes?: OrderTimes | undefined
}

export function openCertificates(options: CertificatesByThemselvesOptions) {
  const { store, ids, log, acme, domain, ownNames } = options
  const { directory, ordersPerHour } = acme
  const dns = dnsRecordsBy(acme, options)
  // Endpoints of agents share a wildcard, if it can be proven.
  const wildcard = dns && isOrdered(domain) ? `*.${domain}` : undefined
  const onChange = () => orders.look()
  const wanted = new WantedNames({ store, wildcard, ownNames, onChange })
  const endpoints =
    wildcard === undefined && isOrdered(domain) && acme.endpointsPerWeek > 0
      ? new EndpointNames({ ...options, wanted, perWeek: acme.endpointsPerWeek, onChange })
      : undefined
  const names = new NameStore({ ...options, holder: ids.next('holder_'), ordersPerHour })
  const account = new AcmeAccount({ ...options, ...acme })
  const orders = new CertificateOrders({
    ...options,
    ...{ wanted, names, endpoints, account, dns, directory, ordersPerHour },
    random: Math.random,
    times: options.orderTimes ?? orderTimes,
  })
  const counted = new CertificateNameCounts({
    count: () => store.read(({ certificates }) => certificates.nameCounts()),
    steady: () => performance.now(),
  })
  const expired = new ExpiredCertificates({ ...options, wanted })
  return {
    /** Must be followed before work starts. */
    wanted,
    async start() {
      await orders.start()
      expired.start()
    },
    /** An agent came online under a name, over TLS that ends here. */
    endpointStarted(name: string) {
      endpoints
        ?.started(name)
        .catch((err: unknown) =>
          log.warn(
            { reason: reasonOf(err), name },
            'could not request a certificate for an endpoint; retrying when its agent connects again',
          ),
        )
    },
    async stop() {
      expired.stop()
      await orders.stop()
    },
    /** For the metrics. */
    async metrics() {
      const ordersWithinHour = await store.read(({ certificates }) => certificates.ordersWithin(HOUR_MS))
      return { ...(await counted.get()), ordersWithinHour, ...orders.counts }
    },
  }
}

interface DnsSetup {
  /** An executable that sets DNS records. */
  readonly dnsCommand: string | null
  /** A name server that accepts updates signed with the key. */
  readonly dnsServer: { readonly host: string; readonly port: number } | null
  readonly dnsKey: { readonly name: string; readonly algorithm: TsigAlgorithm; readonly secret: Secret } | null
}

/** Chooses how DNS records are set, from the settings. Undefined if neither is set. */
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
