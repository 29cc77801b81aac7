/** What the suite asks of an agent, whoever made it: one port, and a driver behind it for each agent. */
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import type { AgentCommand } from '../../../src/model/presence.ts'
import type { ApiClient } from '../../support/api-client.ts'
import type { Platform } from '../../support/platform.ts'

export interface AgentDriver {
  readonly name: string
  /** Why it cannot run on this machine; false when it can. */
  readonly missing: string | false
  /** What the API shows of its sessions. */
  readonly shown: { readonly version: RegExp; readonly os: string; readonly transport: string }
  /** Whether it has a session of its own, which carries metadata and comes back as the same with all its addresses. */
  readonly hasSession: boolean
  /** Whether it tells the server where its services are. */
  readonly tellsServices: boolean
  /** Whether what its program answers to a command reaches the server; otherwise the answer is always yes. */
  readonly answersCommands: boolean
  /** What the log says when it asks with a credential that is gone. */
  readonly refusedInLog: RegExp
  /** Rows of the suite that it cannot have, by a part of their titles, and why. */
  readonly lacks: readonly (readonly [row: string, why: string])[]
  /** Where the API has its credentials. */
  readonly credentials: '/credentials' | '/ssh_credentials'
  /** Creates one. */
  credential(platform: Platform, body?: object): Promise<Credential>
  /** Where it connects to, with a credential that may do everything. */
  access(platform: Platform): Promise<Access>
  /** Rejects with an `AgentRefusal` when the server says no. */
  connect(options: ConnectOptions): Promise<ConnectedAgent>
}

export interface Credential {
  readonly id: string
  /** Or the file of a key, for ssh. */
  readonly authtoken: string
}

export interface Access {
  /** `host:port`. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly authtoken: string
  /** For those who can only end, and must look when the server has noticed. */
  readonly admin?: ApiClient
}

export interface ConnectOptions extends Access {
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
