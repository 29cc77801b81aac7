/** What is online: the sessions and tunnels of agents, and the endpoints they serve, as the API reads them. */

export type AgentCommand = 'restart' | 'stop' | 'update'

/** One agent's live connection, in the fields of contract 2.4; `credentialId` becomes the Ref. */
export interface PresentSession {
  readonly id: string
  readonly agentVersion: string
  readonly credentialId: string
  readonly ip: string
  readonly metadata: string
  readonly os: string
  readonly region: string
  readonly startedAt: string
  readonly transport: 'v2' | 'ssh'
}

/** One thing a session serves, in the fields of contract 2.5. */
export interface PresentTunnel {
  readonly id: string
  readonly sessionId: string
  readonly startedAt: string
  readonly metadata: string
  readonly region: string
  readonly forwardsTo: string
  /** Agent-initiated: it has a URL of its own. */
  readonly endpoint?: {
    readonly id: string
    readonly proto: 'http' | 'https' | 'tcp' | 'tls'
    readonly publicUrl: string
  }
  /** Backend: tunnel groups find it by these. */
  readonly labels?: Readonly<Record<string, string>>
}

/** A public address that is being served; what does not apply to it is absent. */
export interface PresentEndpoint {
  readonly id: string
  readonly region: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly publicUrl: string
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  readonly hostport: string
  readonly type: 'ephemeral' | 'edge'
  /** As its agent calls it; `''` where it has no name. */
  readonly name: string
  readonly description: string
  readonly metadata: string
  /** The reserved domain or reserved address that it stands on. */
  readonly domainId?: string
  readonly tcpAddrId?: string
  /** Who serves it: one tunnel, or an edge. */
  readonly tunnelId?: string
  readonly edgeId?: string
}

/** Those that are online, newest first, at most `limit` with ids before `beforeId`. */
export interface PresencePage {
  readonly beforeId?: string
  readonly limit: number
}

/** Where the API reads what is online, and sends a command to whoever holds a session. */
export interface Presence {
  sessions(page: PresencePage): Promise<readonly PresentSession[]>
  session(id: string): Promise<PresentSession | undefined>
  tunnels(page: PresencePage): Promise<readonly PresentTunnel[]>
  tunnel(id: string): Promise<PresentTunnel | undefined>
  endpoints(page: PresencePage): Promise<readonly PresentEndpoint[]>
  endpoint(id: string): Promise<PresentEndpoint | undefined>
  /** Ids of the backend tunnels that carry all of `labels`, oldest first. */
  tunnelsWith(labels: Readonly<Record<string, string>>): Promise<readonly string[]>
  /** Resolves once the agent acknowledged; throws a `Refusal` that says why it did not. */
  command(sessionId: string, command: AgentCommand): Promise<void>
}
