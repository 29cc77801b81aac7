/** One agent's session over the wire: its calls and tunnels, its signs of life, and its end. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { timestamp } from '../../lib/clock.ts'
import { tell } from '../../link/wire/agent-rpc.ts'
import { buildNodes, buildStopTunnel, moveMessage } from '../../link/wire/messages/command-messages.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { AgentCommand, PresentSession } from '../../model/presence.ts'
import { AgentCalls } from './agent-calls.ts'
import { AgentLink, type LinkParts } from './agent-link.ts'
import { Dialler } from './dial-tunnel.ts'
import { LabelIds } from './label-ids.ts'
import { AgentCommands } from './session-commands.ts'
import type { LiveSession, Tunnel } from './session-types.ts'
import { TunnelTable } from './tunnel-table.ts'

/** Most characters kept of each text that an agent sends about itself. */
const MAX_TEXT = 255

/** The first protocol version in which an agent can be told that a tunnel is over. */
const STOP_TUNNEL_VERSION = 3

export class AgentSession extends AgentLink implements LiveSession {
  readonly id: string
  readonly present: PresentSession
  readonly tunnels = new TunnelTable()
  readonly #dialler: Dialler
  readonly #commands: AgentCommands
  readonly #labelIds: LabelIds
  readonly #calls: AgentCalls

  /**
   * Replaces a former connection of the same session, and is online from now on. `former`: the label tunnels that it had on
   * that connection.
   */
  constructor(parts: LinkParts, former: readonly FormerLabelTunnel[]) {
    super(parts)
    const { mux, traits, peer, request, authenticated, listener } = parts
    const { sessionId, credentialId, startedAt, isResumed } = authenticated
    this.id = sessionId
    this.present = {
      id: sessionId,
      agentVersion: cut(request.version),
      credentialId,
      ip: peer.ip,
      metadata: request.metadata,
      os: cut(request.os),
      region: listener.online.region,
      startedAt: timestamp(startedAt),
      transport: 'v2',
    }
    this.#dialler = new Dialler(mux, traits)
    this.#commands = new AgentCommands(mux, request, { timeoutMs: listener.limits.commandMs })
    listener.online.registry.addSession(this)
    this.#labelIds = new LabelIds(sessionId, { isResumed, former })
    this.#calls = new AgentCalls(this, this.#labelIds, listener)
    this.watch({ isPinged: true })
    const agent = cut(request.userAgent)
    listener.log.info({ session: this.id, credential: credentialId, peer: peer.ip, agent, isResumed }, 'agent online')
  }

  get connections(): number {
    // All streams that we opened, except heartbeat and commands.
    return Math.max(0, this.parts.mux.opened - 1 - this.#commands.pending)
  }

  /** Serves a stream that the agent opened, other than a heartbeat; resolves when it is answered. */
  serve(stream: WireStream, type: number): Promise<void> {
    return this.#calls.serve(stream, type)
  }

  async proveAlive(): Promise<void> {
    if (!(await this.isAlive())) this.end('its agent gave no sign of life when another agent asked for its address')
  }

  open(tunnel: Tunnel, request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault> {
    return this.#dialler.open(tunnel, request)
  }

  async command(command: AgentCommand): Promise<void> {
    await this.#commands.send(command)
    this.parts.listener.log.info({ session: this.id, command }, 'agent took a command')
  }

  tellStopped({ id, wireId }: Tunnel, { message, ngrok }: { readonly message: string; readonly ngrok: number }): void {
    this.#labelIds.ended(id)
    // Older agents would take the message for a visitor's connection.
    if (Number(this.parts.authenticated.version) < STOP_TUNNEL_VERSION) return
    const stop = buildStopTunnel({ id: wireId, message, errorCode: `ERR_NGROK_${ngrok}` })
    tell(this.parts.mux, streamTypes.stopTunnel, stop)
  }

  tellToMove(nodes?: readonly string[]): boolean {
    const { request, mux } = this.parts
    // Other agents would take the message for a visitor's connection, and older ones of ours would come back to this node.
    if (!(nodes ? request.knowsNodes : request.canMove)) return false
    return tell(mux, streamTypes.move, nodes ? buildNodes(nodes) : moveMessage) === undefined
  }

  tellNodes(addresses: readonly string[]): void {
    const { request, mux } = this.parts
    if (request.knowsNodes) tell(mux, streamTypes.nodes, buildNodes(addresses))
  }

  protected release(reason: string): void {
    const { online, log } = this.parts.listener
    online.registry.removeSession(this)
    online.legs.end(this.id, 'its session is over')
    const { bytesIn, bytesOut } = this
    log.info({ session: this.id, reason, bytesIn, bytesOut }, 'agent offline')
  }
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT).toWellFormed()
}
