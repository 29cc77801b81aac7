/** The port through which the suite drives agents, with one driver for each agent. */
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import type { AgentCommand } from '../../../src/model/presence.ts'
import type { ApiClient } from '../../support/api-client.ts'
import type { Platform } from '../../support/platform.ts'

export interface AgentDriver {
  readonly name: string
  /** Why the agent cannot run on this machine; false when it can. */
  readonly missing: string | false
  /** What the API shows of its sessions. */
  readonly shown: { readonly version: RegExp; readonly os: string; readonly transport: string }
  /** Whether it has a session with metadata, which comes back as the same session with all its addresses. */
  readonly hasSession: boolean
  /** Whether it tells the server where its services are. */
  readonly tellsServices: boolean
  /** Whether its program's answer to a command reaches the server; otherwise the answer is always success. */
  readonly answersCommands: boolean
  /** The log message when it tries to connect with a deleted credential. */
  readonly refusedInLog: RegExp
  /** Rows of the suite that it does not support, by a part of their titles, and why. */
  readonly lacks: readonly (readonly [row: string, why: string])[]
  /** The API collection of its credentials. */
  readonly credentials: '/credentials' | '/ssh_credentials'
  /** Creates a credential. */
  credential(platform: Platform, body?: object): Promise<Credential>
  /** The address to connect to, with an unrestricted credential. */
  access(platform: Platform): Promise<Access>
  /** Rejects with an `AgentRefusal` when the server refuses. */
  connect(options: ConnectOptions): Promise<ConnectedAgent>
}

export interface Credential {
  readonly id: string
  /** The authtoken; for ssh, the file of a key. */
  readonly authtoken: string
}

export interface Access {
  /** `host:port`. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly authtoken: string
  /** For drivers that can only end their client, and poll until the server has noticed. */
  readonly admin?: ApiClient
}

export interface ConnectOptions extends Access {
  readonly metadata?: string
  /** Handlers of commands; others are unsupported. An error that a handler throws is its answer. */
  readonly commands?: Partial<Record<AgentCommand, () => void>>
  /** In whole seconds: the heartbeat interval, and how late a heartbeat may be. */
  readonly heartbeat?: { readonly everyS: number; readonly toleranceS: number }
  /** Called each time it finds its session lost, before it reconnects. */
  readonly onLost?: () => void
}

export interface ConnectedAgent {
  /** Resolves when the tunnel is online; rejects with an `AgentRefusal` when the server refuses. */
  open(tunnel: TunnelOptions): Promise<OpenTunnel>
  close(): Promise<void>
}

export interface OpenTunnel {
  /** `''` with labels. */
  readonly url: string
  close(): Promise<void>
}

/** The server refused a session or a tunnel. */
export class AgentRefusal extends Error {
  /** Such as `ERR_NGROK_334`; `''` when the agent showed none. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'AgentRefusal'
    this.code = code
  }
}
