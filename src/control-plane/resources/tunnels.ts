/** Tunnels: what online sessions serve. */
import { Type } from '../../lib/shape/type.ts'
import { RefListSchema, RefSchema } from '../../model/ref.ts'
import { present } from './resource.ts'

export const tunnels = present({
  kind: 'tunnel',
  about: 'Tunnels that are online.',
  prefix: 'tn_',
  shows: {
    id: Type.String({ description: 'Unique identifier.' }),
    started_at: Type.String({ description: 'When the tunnel was started, RFC 3339.' }),
    metadata: Type.String({ description: "User-defined data from the tunnel's configuration." }),
    region: Type.String({ description: 'Region in which the tunnel runs.' }),
    tunnel_session: RefSchema,
    forwards_to: Type.String({ description: 'Upstream address: a URL or a network address.' }),
    // Absent where they do not apply (D19).
    public_url: Type.Optional(Type.String({ description: 'URL of the public endpoint of an agent-initiated tunnel.' })),
    proto: Type.Optional(Type.String({ description: '`http`, `https`, `tcp` or `tls`.' })),
    endpoint: Type.Optional(RefSchema),
    labels: Type.Optional(
      Type.Unsafe({
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'Labels that tunnel groups match.',
      }),
    ),
    backends: Type.Optional(RefListSchema),
  },
})
