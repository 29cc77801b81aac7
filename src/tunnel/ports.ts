/** What the doors need from the rest of the server. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { Secret } from '../lib/secrets/secret.ts'
import type { AgentCredential } from '../model/agent-credential.ts'
import { DialFault, type DialRequest } from '../model/dial.ts'
import type { FormerLabelTunnel } from '../model/former-labels.ts'
import type { LiveSession, Tunnel } from './live.ts'

export type { AgentCredential } from '../model/agent-credential.ts'
export { BindRefusal, type EndpointRequest, type Endpoints, type OpenEndpoint } from '../model/endpoint.ts'

export interface CurrentCredentials {
  /**
   * Looks up a session's credential again: its ACL may have changed, or it may be gone. Throws when the store is away.
   */
  current(id: string): Promise<AgentCredential | undefined>
}

export interface Credentials extends CurrentCredentials {
  /** The credential with this token; throws when the store is away. */
  find(token: Secret): Promise<AgentCredential | undefined>
  /** What `find` gave last for this token, for an agent that comes back to this node while the store is away. */
  recall?(token: Secret, sessionId: string): Promise<AgentCredential | undefined>
}

/** Other data planes, which list and reach what is online here, and hold sessions of their own. */
export interface Elsewhere {
  /**
   * An agent comes back: ends its session wherever it is, and gives the label tunnels that it had. When it is moving, the
   * session goes on where it is until its tunnels have come.
   */
  returning(sessionId: string, how: { readonly isMoving: boolean }): Promise<readonly FormerLabelTunnel[]>
  sessionStarted(session: LiveSession): void
  /** It has ended with all its tunnels. */
  sessionEnded(session: LiveSession): void
  /** Resolves when others can reach it. */
  tunnelStarted(tunnel: Tunnel): Promise<void>
  tunnelChanged(tunnel: Tunnel): void
  tunnelEnded(tunnel: Tunnel): void
  /** The server stopped it, and no plane may give it to its agent again. */
  tunnelStopped(tunnelId: string): void
  /** The session of a tunnel that another plane has online. */
  holderOf(tunnelId: string): string | undefined
  /** Asks whoever holds a place for a sign of life; true when the place is free afterwards. */
  proveAlive(place: string): Promise<boolean>
  dial(request: DialRequest): Promise<ByteStream | DialFault>
  /** Whether a session is online, with this credential, and so may have further connections. Rejects when nobody knows. */
  mayHaveLeg(session: { readonly sessionId: string; readonly credentialId: string }): Promise<boolean>
  /** Tunnels of a session that others have are reached in another way from now on. */
  legChanged(sessionId: string): void
}

/** There is no other data plane. */
export const nowhere: Elsewhere = {
  returning: async () => [],
  sessionStarted() {},
  sessionEnded() {},
  tunnelStarted: async () => {},
  tunnelChanged() {},
  tunnelEnded() {},
  tunnelStopped() {},
  holderOf: () => undefined,
  proveAlive: async () => false,
  dial: async () => new DialFault('offline', 'the tunnel is not online'),
  mayHaveLeg: async () => false,
  legChanged() {},
}
