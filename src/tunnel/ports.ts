/** What the doors need from the rest of the server. */
import type { Secret } from '../lib/secrets/secret.ts'

export { BindRefusal, type EndpointRequest, type Endpoints, type OpenEndpoint } from '../model/endpoint.ts'

/** What an agent proves itself with. */
export interface AgentCredential {
  readonly id: string
  /** D18: empty is unrestricted. */
  readonly acl: readonly string[]
}

export interface CurrentCredentials {
  /**
   * Looks up a session's credential again: its ACL may have changed, or it may be gone. Throws when the store is away.
   */
  current(id: string): Promise<AgentCredential | undefined>
}

export interface Credentials extends CurrentCredentials {
  /** The credential with this token; throws when the store is away. */
  find(token: Secret): Promise<AgentCredential | undefined>
}
