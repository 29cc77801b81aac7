/** Nodes: the servers that share the database. */
import { nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { present } from './resource.ts'

export const nodes = present({
  kind: 'node',
  about: 'Servers that share this database and are online. Admins only.',
  prefix: 'nd_',
  // The list shows the addresses of machines.
  access: 'admin',
  columns: ['name', 'address', 'region', 'version', 'sessions', 'since', 'lease'],
  shows: {
    id: Type.String({ description: 'Unique identifier; it changes with each start of the node.' }),
    uri: Type.String({ description: 'Address of this node.' }),
    name: Type.String({ description: 'Name given by the operator with `--node`, or else its host name.' }),
    address: Type.String({ description: 'Where other nodes reach it, as `host:port`; empty for a node on its own.' }),
    region: Type.String({ description: 'Region of the sessions that it holds.' }),
    version: Type.String({ description: 'Version of the server.' }),
    sessions: Type.Integer({ description: 'Number of agent sessions that it holds.' }),
    since: Type.String({ description: 'When it started, RFC 3339.' }),
    lease: nullable(
      Type.Integer({
        description:
          'Whole seconds until others consider it gone, unless it reports again; null for a node on its own.',
      }),
    ),
  },
})
