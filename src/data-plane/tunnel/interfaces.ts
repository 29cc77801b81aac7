/** What the listeners need from the rest of the server. */
import type { Secret } from '../../lib/secrets/secret.ts'
import { errorText } from '../../link/wire/messages/error-text.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import { type Dial, DialFault, type FollowGroup } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { BindRefusal } from '../../model/endpoint.ts'
import type { Tunnel } from './session-types.ts'

export type { AgentCredential } from '../../model/agent-credential.ts'
export { BindRefusal, type EndpointRequest, type Endpoints, type OpenEndpoint } from '../../model/endpoint.ts'

export interface Credentials {
  /** The credential with this token; throws when the store is down. */
  find(token: Secret): Promise<AgentCredential | undefined>
  /** The last result of `find` for this token, for an agent that comes back to this node while the store is down. */
  recall?(token: Secret, sessionId: string): Promise<AgentCredential | undefined>
}

/** Tunnels at other data planes and nodes. */
export interface RemoteTunnels {
  /** The session of a tunnel that another plane has online. */
  holderOf(tunnelId: string): string | undefined
  /** The session of a tunnel at another plane or node, if known. */
  sessionOf(tunnelId: string): string | undefined
  /** Whether an endpoint that is served here belongs to a tunnel at another node. */
  isRemote(endpointId: string): boolean
  readonly dial: Dial
  /** Follows a group at other nodes too; undefined when there are none. */
  readonly followGroup?: FollowGroup | undefined
  /** The tunnels of a session at another plane are reached another way from now on. */
  legChanged(sessionId: string): void
  /** A tunnel is online here. */
  cameHere(tunnelId: string, config: EdgeConfig | undefined): void
  /** A tunnel of this plane has ended. */
  leftHere(tunnel: Pick<Tunnel, 'id' | 'labels' | 'endpoint'>): void
}

/** What a data plane on its own knows of tunnels elsewhere. */
export const noRemoteTunnels: RemoteTunnels = {
  holderOf: () => undefined,
  sessionOf: () => undefined,
  isRemote: () => false,
  dial: async () => new DialFault('offline', 'the tunnel is not online'),
  legChanged() {},
  cameHere() {},
  leftHere() {},
}

/** The text of a refusal, as an answer to an agent carries it. */
export function refusalText({ message, ngrok }: BindRefusal): string {
  return errorText(message, `ERR_NGROK_${ngrok}`)
}
