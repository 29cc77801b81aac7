/** Weighted backends: share traffic between other backends in proportion to their weights. */
import { Type } from '../../lib/shape/type.ts'
import { childMentions, MAX_CHILDREN } from './backend-lists.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const weightedBackends = storedKind({
  kind: 'weighted_backend',
  about: 'Shares traffic between other backends in proportion to their weights.',
  prefix: 'bkdwd_',
  path: '/backends/weighted',
  listKey: 'backends',
  access: 'account',
  form: {
    description,
    metadata,
    backends: Type.Record(Type.String(), Type.Integer({ minimum: 0, maximum: 10_000 }), {
      description: 'Weights from 0 to 10000, by backend id; a backend with weight 0 is never chosen.',
      minProperties: 1,
      maxProperties: MAX_CHILDREN,
      maxKeyBytes: 255,
    }),
  },
  mentions: ({ backends }) => childMentions(Object.keys(backends)),
})
