/**
 * A leg: a further connection of an agent's session, at a data plane that does not have the session, only for visitors of the
 * session's tunnels.
 */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { answer, tell } from '../../link/wire/agent-rpc.ts'
import { moveMessage } from '../../link/wire/messages/command-messages.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'
import { AgentLink, type LinkParts } from './agent-link.ts'
import { Dialler } from './dial-tunnel.ts'
import { refusalText } from './interfaces.ts'

export class AgentLeg extends AgentLink {
  /** The id of its session. */
  readonly id: string
  readonly #dialler: Dialler

  /** Takes visitors from here on. */
  constructor(parts: LinkParts) {
    super(parts)
    const { mux, traits, peer, request, authenticated, listener } = parts
    this.id = authenticated.sessionId
    this.#dialler = new Dialler(mux, traits)
    this.watch({ isPinged: true })
    listener.online.legs.add(this)
    listener.log.info({ session: this.id, leg: request.leg, peer: peer.ip }, 'agent leg online')
  }

  /** Open connections of visitors: all streams that we opened, except the heartbeat. */
  get connections(): number {
    return Math.max(0, this.parts.mux.opened - 1)
  }

  /** Answers a stream that the agent opened, other than a heartbeat. */
  serve(stream: WireStream): void {
    answer(stream, buildAnswer(refusalText(refusals.legCalls())))
  }

  /** Dials a tunnel of its session. Over legs, agents know tunnels by the ids that the API shows. */
  open(request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault> {
    return this.#dialler.open({ wireId: request.tunnelId }, request)
  }

  /** Asks the agent to close it after its last visitor. */
  tellToMove(): boolean {
    return tell(this.parts.mux, streamTypes.move, moveMessage) === undefined
  }

  protected release(reason: string): void {
    const { online, log } = this.parts.listener
    online.legs.remove(this)
    log.info({ session: this.id, reason }, 'agent leg offline')
  }
}
