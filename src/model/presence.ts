/** What is online: nodes, the sessions and tunnels of agents, and the endpoints they serve, as the API reads them. */

export type AgentCommand = 'restart' | 'stop' | 'update'

/** One agent's live connection, with the fields of contract 2.4; the API shows `credentialId` as a reference. */
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

/** One thing that a session serves, with the fields of contract 2.5. */
export interface PresentTunnel {
  readonly id: string
  readonly sessionId: string
  readonly startedAt: string
  readonly metadata: string
  readonly region: string
  readonly forwardsTo: string
  /** Set when the tunnel has its own URL. */
  readonly endpoint?: {
    readonly id: string
    readonly proto: 'http' | 'https' | 'tcp' | 'tls'
    readonly publicUrl: string
  }
  /** Set when the tunnel is a backend; tunnel groups find it by these labels. */
  readonly labels?: Readonly<Record<string, string>>
}

/** A public address that is being served; fields that do not apply are absent. */
export interface PresentEndpoint {
  readonly id: string
  readonly region: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly publicUrl: string
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  readonly hostport: string
  readonly type: 'ephemeral' | 'edge'
  /** The name that its agent gave it; `''` when there is none. */
  readonly name: string
  readonly description: string
  readonly metadata: string
  /** Whether it may share its address; left out when it may not. */
  readonly isPooled?: boolean
  /** Where its agent forwards to, as the agent says; left out when unknown. */
  readonly upstreamUrl?: string
  /** The HTTP version in which it forwards; left out when that is unknown, or no HTTP. */
  readonly upstreamProtocol?: 'http1' | 'http2'
  /** The reserved domain or reserved address that it uses. */
  readonly domainId?: string
  readonly tcpAddrId?: string
  /** What serves it: one tunnel, or an edge. */
  readonly tunnelId?: string
  readonly edgeId?: string
}

/** One running server. Several may share a database, and each announces its address to the others. */
export interface PresentNode {
  readonly id: string
  readonly name: string
  /** Where other nodes reach it, as `host:port`; `''` when it is the only node. */
  readonly address: string
  readonly region: string
  readonly version: string
  /** How many sessions of agents it holds. */
  readonly sessions: number
  /** When it started, RFC 3339. */
  readonly since: string
  /** Whole seconds until others count it as gone unless it renews its lease; null when it is the only node. */
  readonly lease: number | null
}

/** Which page of a list to read: newest first, at most `limit`, with ids before `beforeId`. */
export interface PresencePage {
  readonly beforeId?: string
  readonly limit: number
}

/** The port through which the API reads what is online and sends commands to agents. */
export interface Presence {
  nodes(page: PresencePage): Promise<readonly PresentNode[]>
  node(id: string): Promise<PresentNode | undefined>
  sessions(page: PresencePage): Promise<readonly PresentSession[]>
  session(id: string): Promise<PresentSession | undefined>
  tunnels(page: PresencePage): Promise<readonly PresentTunnel[]>
  tunnel(id: string): Promise<PresentTunnel | undefined>
  endpoints(page: PresencePage): Promise<readonly PresentEndpoint[]>
  endpoint(id: string): Promise<PresentEndpoint | undefined>
  /** Ids of the backend tunnels that carry all of `labels`, oldest first. */
  tunnelsWith(labels: Readonly<Record<string, string>>): Promise<readonly string[]>
  /** Resolves when the agent has acknowledged the command; throws a `Refusal` when it has not. */
  command(sessionId: string, command: AgentCommand): Promise<void>
}
