/** What the suite asks of an agent, whoever made it: one port, and a driver behind it for each agent. */
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import type { AgentCommand } from '../../../src/model/presence.ts'

export interface AgentDriver {
  readonly name: string
  /** What `agent_version` of its sessions is. */
  readonly version: string
  /** Whether what its program answers to a command reaches the server; otherwise the answer is always yes. */
  readonly answersCommands: boolean
  /** Rejects with an `AgentRefusal` when the server says no. */
  connect(options: ConnectOptions): Promise<ConnectedAgent>
}

export interface ConnectOptions {
  /** `host:port`. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly authtoken: string
  readonly metadata?: string
  /** What the program does when it is told to; it supports no others. What a handler throws is its answer. */
  readonly commands?: Partial<Record<AgentCommand, () => void>>
  /** In whole seconds: how often it shows that it lives, and how much longer a sign may take. */
  readonly heartbeat?: { readonly everyS: number; readonly toleranceS: number }
  /** Each time it finds that its session is lost, before it tries to come back. */
  readonly onLost?: () => void
}

export interface ConnectedAgent {
  /** Resolves when the tunnel is online; rejects with an `AgentRefusal` when the server says no. */
  open(tunnel: TunnelOptions): Promise<OpenTunnel>
  close(): Promise<void>
}

export interface OpenTunnel {
  /** `''` with labels. */
  readonly url: string
  close(): Promise<void>
}

/** The server said no. */
export class AgentRefusal extends Error {
  /** Such as `ERR_NGROK_334`; `''` when the agent showed none. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AgentRefusal'
    this.code = code
  }
}
