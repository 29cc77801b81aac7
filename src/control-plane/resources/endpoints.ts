/** Endpoints: public addresses that are being served. */
import { Type } from '../../lib/shape/type.ts'
import { RefSchema } from '../../model/ref.ts'
import { present } from './resource.ts'

export const endpoints = present({
  kind: 'endpoint',
  about: 'Public addresses that are being served now.',
  prefix: 'ep_',
  shows: {
    id: Type.String({ description: 'Unique identifier.' }),
    uri: Type.String({ description: 'Address of this resource.' }),
    region: Type.String({ description: 'Region from which it is served.' }),
    created_at: Type.String({ description: 'When it came online, RFC 3339.' }),
    updated_at: Type.String({ description: 'When it last changed, RFC 3339.' }),
    public_url: Type.String({ description: 'URL at which visitors reach it.' }),
    proto: Type.String({ description: '`http`, `https`, `tcp` or `tls`.' }),
    hostport: Type.String({ description: 'Where it listens, as `host:port`.' }),
    type: Type.Enum(['ephemeral', 'edge'], { description: 'Whether an agent (`ephemeral`) or an edge serves it.' }),
    name: Type.String({ description: 'Name given by its agent; empty when it has none.' }),
    description: Type.String({ description: 'Human-readable description of whoever serves it.' }),
    metadata: Type.String({ description: 'User-defined data of whoever serves it.' }),
    bindings: Type.Array(Type.String(), { description: 'Who can reach it: always `public`.' }),
    pooling_enabled: Type.Boolean({ description: 'Whether it shares its address with other tunnels of its owner.' }),
    // D122: it may hold secrets of its agent, so it is not kept in a form that could be listed.
    traffic_policy: Type.String({ description: 'Always empty: policies are not shown here.' }),
    upstream_protocol: Type.String({ description: '`http1` or `http2`; empty for an edge, TCP and TLS.' }),
    upstream_url: Type.String({ description: 'Where its agent forwards to; empty when unknown, and for an edge.' }),
    // Absent where they do not apply, as in a tunnel (D19).
    domain: Type.Optional(RefSchema),
    tcp_addr: Type.Optional(RefSchema),
    tunnel: Type.Optional(RefSchema),
    edge: Type.Optional(RefSchema),
  },
})
