/** Opens the orders of certificates that this server makes by itself. */
import { ownNames } from '../config/own-names.ts'
import type { ControlParts, OpeningControl } from './opening-control.ts'

/** The prefix of the place of an endpoint with TLS; its name follows. */
const NAME_PREFIX = 'secure:'

/** Undefined when certificates are not ordered. */
export async function openOrders(
  { settings, store, sealer, ids, now, log, version, orderTimes }: OpeningControl,
  { files, proven, cluster, planes }: Omit<ControlParts, 'documents'>,
) {
  if (settings.acmeDirectory === '') return undefined
  const { openCertificates } = await import('../../control-plane/acme/open-certificates.ts')
  const orders = openCertificates({
    ...{ store, sealer, ids, now, log, version, orderTimes },
    acme: {
      directory: settings.acmeDirectory,
      email: settings.acmeEmail,
      caFile: settings.acmeCa,
      eabKeyId: settings.acmeEabKeyId,
      eabKey: settings.acmeEabKey,
      ordersPerHour: settings.acmeOrdersPerHour,
      endpointsPerWeek: settings.acmeEndpointsPerWeek,
      dnsCommand: settings.acmeDnsCommand,
      dnsServer: settings.acmeDnsServer,
      dnsKey: settings.acmeDnsKey,
    },
    env: process.env,
    domain: settings.domain,
    ownNames: ownNames(settings),
    whyNotOrder: async (name) => proven?.whyNoLonger(name),
    isInFile: (name) => files?.covers(name) ?? false,
    isOnline: async (name) => {
      const address = NAME_PREFIX + name
      if (planes.directory.holdersOf(address).length > 0) return true
      return ((await cluster?.lookUps.addresses([address])) ?? []).length > 0
    },
    showChallenge: (challenge) => planes.showChallenge(challenge),
    showAtOtherNodes: async (challenge) => (await cluster?.showChallenge(challenge)) ?? true,
  })
  planes.whenTunnelStarted(({ endpoint }) => {
    if (endpoint?.present.proto !== 'https' || !endpoint.place.startsWith(NAME_PREFIX)) return
    orders.endpointStarted(endpoint.place.slice(NAME_PREFIX.length))
  })
  return orders
}
