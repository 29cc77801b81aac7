/** The registry of API resources; a new resource takes a file and a line here. */

import { agentIngresses } from './agent-ingresses.ts'
import { apiKeys } from './api-keys.ts'
import { applicationSessions } from './application-sessions.ts'
import { applicationUsers } from './application-users.ts'
import { botUsers } from './bot-users.ts'
import { brokenEdges } from './broken-edges.ts'
import { captures } from './captures.ts'
import { certificateAuthorities } from './certificate-authorities.ts'
import { credentials } from './credentials.ts'
import { endpoints } from './endpoints.ts'
import { exchanges } from './exchanges.ts'
import { failoverBackends } from './failover-backends.ts'
import { httpResponseBackends } from './http-response-backends.ts'
import { httpsEdgeRoutes } from './https-edge-routes.ts'
import { httpsEdges } from './https-edges.ts'
import { ipPolicies } from './ip-policies.ts'
import { ipPolicyRules } from './ip-policy-rules.ts'
import { ipRestrictions } from './ip-restrictions.ts'
import { nodes } from './nodes.ts'
import { policyExplanations } from './policy-explanations.ts'
import { reservedAddrs } from './reserved-addrs.ts'
import { reservedDomains } from './reserved-domains.ts'
import type { Resource } from './resource.ts'
import { sshCertificateAuthorities } from './ssh-certificate-authorities.ts'
import { sshCredentials } from './ssh-credentials.ts'
import { sshHostCertificates } from './ssh-host-certificates.ts'
import { sshUserCertificates } from './ssh-user-certificates.ts'
import { staticBackends } from './static-backends.ts'
import { tcpEdges } from './tcp-edges.ts'
import { tlsCertificates } from './tls-certificates.ts'
import { tlsEdges } from './tls-edges.ts'
import { trafficHistory } from './traffic-history.ts'
import { tunnelGroupBackends } from './tunnel-group-backends.ts'
import { tunnelSessions } from './tunnel-sessions.ts'
import { tunnels } from './tunnels.ts'
import { users } from './users.ts'
import { weightedBackends } from './weighted-backends.ts'

/** Resources that have ids, in the order in which the API document lists them. */
export const resources: readonly Resource[] = [
  apiKeys,
  sshCredentials,
  credentials,
  botUsers,
  users,
  nodes,
  tunnelSessions,
  tunnels,
  endpoints,
  applicationUsers,
  applicationSessions,
  exchanges,
  captures,
  tcpEdges,
  tlsEdges,
  httpsEdges,
  httpsEdgeRoutes,
  tunnelGroupBackends,
  httpResponseBackends,
  weightedBackends,
  failoverBackends,
  staticBackends,
  reservedAddrs,
  reservedDomains,
  agentIngresses,
  tlsCertificates,
  ipPolicies,
  ipPolicyRules,
  certificateAuthorities,
  ipRestrictions,
  sshCertificateAuthorities,
  sshUserCertificates,
  sshHostCertificates,
]

/** Everything that has routes: the resources, and what has no ids because nothing of it is stored. */
export const documented: readonly Resource[] = [...resources, policyExplanations, trafficHistory, brokenEdges]

/** The resource of a kind; an unknown kind is a defect in our own code. */
export function resourceOf(kind: string): Resource {
  const found = resources.find((resource) => resource.kind === kind)
  if (!found) throw new Error(`no resource is of kind ${kind}`)
  return found
}
