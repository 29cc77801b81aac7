/** Tunnel group backends: every online tunnel that carries the group's labels. */
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { RefListSchema } from '../../model/ref.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const tunnelGroupBackends = storedKind({
  kind: 'tunnel_group_backend',
  about: 'Balances traffic over the online tunnels that carry all of its labels.',
  prefix: 'bkdtg_',
  path: '/backends/tunnel_group',
  listKey: 'backends',
  access: 'account',
  form: {
    description,
    metadata,
    labels: Type.Record(Type.String(), Type.String({ minLength: 1, maxBytes: 255 }), {
      description: 'A tunnel joins the group when it carries every one of these labels.',
      minProperties: 1,
      maxProperties: 64,
      maxKeyBytes: 255,
    }),
  },
  shows: { tunnels: RefListSchema },
  settle(fields) {
    for (const [key, value] of Object.entries(fields.labels)) {
      if (key === '' || `${key}${value}`.includes('=')) {
        throw new BadValue('labels', 'value', '`labels` needs keys that are not empty, and no `=` in a key or value')
      }
    }
    return fields
  },
  live: async ({ labels }, presence) => ({ tunnels: await presence.tunnelsWith(labels) }),
})
