/** What the door of the agents asks of the rest of the server. */
import type { Secret } from '../lib/secrets/secret.ts'

export { BindRefusal, type EndpointRequest, type Endpoints, type OpenEndpoint } from '../model/endpoint.ts'

/** What an agent proves itself with. */
export interface AgentCredential {
  readonly id: string
  /** D18: empty is unrestricted. */
  readonly acl: readonly string[]
}

export interface CurrentCredentials {
  /** The credential that started a session, later: its ACL may be another, or it may be gone. Throws when the store is away. */
  current(id: string): Promise<AgentCredential | undefined>
}

export interface Credentials extends CurrentCredentials {
  /** The credential whose token this is; throws when the store is away. */
  find(token: Secret): Promise<AgentCredential | undefined>
}
