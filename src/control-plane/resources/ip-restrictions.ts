/** IP restrictions: which addresses may reach the API, the dashboard, the agent listener, or every endpoint. */
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { RefListSchema } from '../../model/ref.ts'
import { restrictedParts } from '../../model/restricted-part.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const ipRestrictions = storedKind({
  kind: 'ip_restriction',
  about: 'Lets only the addresses of some IP policies reach a part of the server; at most one per part.',
  prefix: 'ipx_',
  access: 'admin',
  form: {
    description,
    metadata,
    enforced: Type.Boolean({
      description: 'Whether other addresses are refused; when false, they are let in and logged.',
      default: false,
    }),
    type: Type.Enum(restrictedParts, {
      description:
        'What to restrict: API calls, the dashboard and docs pages, the agent listener, or every public address.',
    }),
    ip_policy_ids: Type.Array(Type.String({ maxBytes: 255 }), {
      description: 'The IP policies whose addresses may pass.',
      minItems: 1,
      maxItems: 100,
    }),
  },
  fixed: ['type'],
  hides: ['ip_policy_ids'],
  shows: { ip_policies: RefListSchema },
  settle(fields) {
    refuseRepeats('ip_policy_ids', fields.ip_policy_ids)
    return fields
  },
  read: ({ ip_policy_ids }, link) => ({ ip_policies: ip_policy_ids.map(link) }),
  claims: ({ type }) => [
    {
      scope: 'ip_restriction_type',
      key: type,
      taken: {
        code: 'RESTRICTION_IN_USE',
        msg: `there is already an IP restriction with \`type\` \`${type}\`; update that one`,
        field: 'type',
      },
    },
  ],
  mentions: ({ ip_policy_ids }) =>
    ip_policy_ids.map((id, i) => ({ field: `ip_policy_ids[${i}]`, id, kinds: ['ip_policy'] })),
})
