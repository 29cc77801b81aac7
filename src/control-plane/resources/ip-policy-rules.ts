/** Rules of an IP policy: one network each, let in or kept out. */
import { readCidr } from '../../lib/net/cidr.ts'
import { Type } from '../../lib/shape/type.ts'
import { storedKind } from './resource.ts'
import { description, metadata, readOr } from './resource-fields.ts'

export const ipPolicyRules = storedKind({
  kind: 'ip_policy_rule',
  about: 'One network of an IP policy. An address passes when some allow rule matches it and no deny rule does.',
  prefix: 'ipr_',
  access: 'account',
  parent: { kind: 'ip_policy', field: 'ip_policy_id', in: 'body', shownAs: 'ip_policy' },
  form: {
    description,
    metadata,
    cidr: Type.String({ description: 'The network, such as `10.1.0.0/16` or `2001:db8::/32`.', maxBytes: 64 }),
    action: Type.Enum(['allow', 'deny'], { description: 'What happens to addresses of the network.' }),
    ip_policy_id: Type.String({ description: 'The IP policy that the rule belongs to.', maxBytes: 64 }),
  },
  fixed: ['action', 'ip_policy_id'],
  hides: ['ip_policy_id'],
  settle: (fields) => ({ ...fields, network: network(fields.cidr) }),
  claims: ({ network }, policyId) => [
    {
      scope: 'ip_policy_network',
      key: `${policyId} ${network}`,
      taken: {
        code: 'RULE_IN_USE',
        msg: `this IP policy already has a rule for \`${network}\`; update or delete that one`,
        field: 'cidr',
      },
    },
  ],
})

function network(cidr: string): string {
  return readOr('BAD_CIDR', 'cidr', ':', () => readCidr(cidr).canonical)
}
