/** Agent ingresses: further names by which agents reach the server, and their certificates. */
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { readName } from '../../model/hostport.ts'
import { EDGE_NAMES, refuseServed } from './hostports.ts'
import {
  certificateMentions,
  managedOf,
  managementPolicy,
  managementStatus,
  statusShown,
} from './managed-certificate.ts'
import { RESERVED_NAMES } from './reserved-domains.ts'
import { type Claim, storedKind } from './resource.ts'
import { description, domainName, metadata } from './resource-fields.ts'

export const agentIngresses = storedKind({
  kind: 'agent_ingress',
  about:
    "Further names by which agents reach this server, each with a certificate from a certificate authority or from this server's own authority.",
  prefix: 'agin_',
  listKey: 'ingresses',
  access: 'account',
  form: {
    description,
    metadata,
    domain: Type.String({
      description: 'The name, such as `connect.example.com`; it must point to this server and have no other use.',
      maxBytes: 300,
    }),
    certificate_management_policy: managementPolicy(
      "How certificates are issued; without it, agents are shown a certificate of the server's own authority.",
    ),
  },
  fixed: ['domain'],
  shows: {
    ns_targets: Type.Array(Type.String(), {
      description: 'Name servers to delegate the name to. Always empty: point the name to this server instead.',
    }),
    region_domains: Type.Array(Type.String(), { description: 'The names for agents to use: the name itself.' }),
    certificate_management_status: managementStatus,
  },
  settle(fields, around) {
    const domain = domainName(fields.domain)
    if (domain.startsWith('*.')) {
      throw new Refusal('BAD_DOMAIN', '`domain` cannot be a wildcard: agents need a single name', { field: 'domain' })
    }
    const policy = fields.certificate_management_policy
    return { ...fields, domain, managed: policy && managedOf(fields, around) }
  },
  // Only at creation: the settings may change later, and then the operator decides.
  async choose(fields, around) {
    const name = readName(fields.domain)
    if (around.isOwnName?.(name)) {
      const msg = `\`domain\`: the settings of this server already give it the name \`${name}\`; agents can use that`
      throw new Refusal('DOMAIN_IN_USE', msg, { field: 'domain' })
    }
    refuseServed(around, { name }, 'domain')
    return fields
  },
  read: ({ domain, certificate_management_policy: policy, managed }) => ({
    ns_targets: [],
    region_domains: [readName(domain)],
    certificate_management_status: statusShown(policy, managed),
  }),
  // A name has one use. Claimed both as an edge's and as reserved, the name is refused to edges, reservations and binds of
  // agents; and an agent ingress is refused a name that others serve.
  claims: ({ domain }) => [claim(EDGE_NAMES, domain), claim(RESERVED_NAMES, domain)],
  mentions: ({ managed }) => certificateMentions(managed?.certificate_id),
  actions: [{ name: 'retry', about: 'Try again now to get the certificate of an agent ingress' }],
  clears: [{ name: 'certificate_management_policy', field: 'certificate_management_policy' }],
})

function claim(scope: string, domain: string): Claim {
  const msg = `\`domain\`: an edge, a reserved domain or another agent ingress has \`${domain}\`; remove it there first`
  return { scope, key: readName(domain), taken: { code: 'DOMAIN_IN_USE', msg, field: 'domain' } }
}
