/** Tunnel sessions: the agents that are online. */
import { Type } from '../../lib/shape/type.ts'
import { RefSchema } from '../../model/ref.ts'
import { present } from './resource.ts'

export const tunnelSessions = present({
  kind: 'tunnel_session',
  about: 'Agents that are online, and commands to them.',
  prefix: 'ts_',
  commands: ['restart', 'stop', 'update'],
  shows: {
    id: Type.String({ description: 'Unique identifier.' }),
    uri: Type.String({ description: 'Address of this session.' }),
    agent_version: Type.String({ description: 'Version of the agent that started the session.' }),
    credential: RefSchema,
    ip: Type.String({ description: 'Source IP address of the session.' }),
    metadata: Type.String({ description: "User-defined data from the agent's configuration file." }),
    os: Type.String({ description: "Operating system of the agent's host." }),
    region: Type.String({ description: 'Region in which the session started.' }),
    started_at: Type.String({ description: 'When the session first connected, RFC 3339.' }),
    transport: Type.String({ description: 'Transport in use: `service/v2` or `ssh`.' }),
  },
})
