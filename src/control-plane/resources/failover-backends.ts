/** Failover backends: the first of several backends that can be dialled. */
import { Type } from '../../lib/shape/type.ts'
import { refuseRepeats } from '../../model/fields.ts'
import { childMentions, MAX_CHILDREN } from './backend-lists.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const failoverBackends = storedKind({
  kind: 'failover_backend',
  about: 'Sends traffic to the first of its backends that can be dialled.',
  prefix: 'bkdfo_',
  path: '/backends/failover',
  listKey: 'backends',
  access: 'account',
  form: {
    description,
    metadata,
    backends: Type.Array(Type.String({ maxBytes: 255 }), {
      description: 'Ids of backends, in the order in which to try them.',
      minItems: 1,
      maxItems: MAX_CHILDREN,
    }),
  },
  settle(fields) {
    refuseRepeats('backends', fields.backends)
    return fields
  },
  mentions: ({ backends }) => childMentions(backends),
})
