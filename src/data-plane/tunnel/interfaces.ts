/** What the doors need from the rest of the server. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { LiveSession, Tunnel } from './session-types.ts'

export type { AgentCredential } from '../../model/agent-credential.ts'
export { BindRefusal, type EndpointRequest, type Endpoints, type OpenEndpoint } from '../../model/endpoint.ts'

export interface CurrentCredentials {
  /**
   * Looks up a session's credential again: its ACL may have changed, or it may be gone. Throws when the store is down.
   */
  current(id: string): Promise<AgentCredential | undefined>
}

export interface Credentials extends CurrentCredentials {
  /** The credential with this token; throws when the store is down. */
  find(token: Secret): Promise<AgentCredential | undefined>
  /** The last result of `find` for this token, for an agent that comes back to this node while the store is down. */
  recall?(token: Secret, sessionId: string): Promise<AgentCredential | undefined>
}

/** Other data planes, which list and reach what is online here, and hold sessions of their own. */
export interface Elsewhere {
  /**
   * For an agent that comes back: ends its session wherever it is, and returns the label tunnels that it had. When the agent is
   * moving, the session goes on where it is until its tunnels are here.
   */
  returning(sessionId: string, how: { readonly isMoving: boolean }): Promise<readonly FormerLabelTunnel[]>
  sessionStarted(session: LiveSession): void
  /** A session has ended with all its tunnels. */
  sessionEnded(session: LiveSession): void
  /** Resolves when other planes can reach the tunnel. */
  tunnelStarted(tunnel: Tunnel): Promise<void>
  tunnelChanged(tunnel: Tunnel): void
  tunnelEnded(tunnel: Tunnel): void
  /** The server stopped a tunnel; no plane may give it to its agent again. */
  tunnelStopped(tunnelId: string): void
  /** The session of a tunnel that another plane has online. */
  holderOf(tunnelId: string): string | undefined
  /** Asks the holders of a place for a sign of life; true when the place is free afterwards. */
  proveAlive(place: string): Promise<boolean>
  dial(request: DialRequest): Promise<ByteStream | DialFault>
  /** Whether a session with this credential is online, so that it may have legs. Rejects when that is not known. */
  mayHaveLeg(session: { readonly sessionId: string; readonly credentialId: string }): Promise<boolean>
  /** The tunnels of a session at another plane are reached another way from now on. */
  legChanged(sessionId: string): void
}

/** For a server with a single data plane. */
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
