/** A standby: an authenticated connection of an agent whose session is at another node. */

import { answer, tell } from '../../link/wire/agent-rpc.ts'
import { moveMessage } from '../../link/wire/messages/command-messages.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { refusals } from '../../model/agent-errors.ts'
import { AgentLink, type LinkParts } from './agent-link.ts'
import { refusalText } from './interfaces.ts'

/** When the session at the other node is lost, it begins here, without another handshake or authentication. */
export class AgentStandby extends AgentLink {
  /** Requests of its agent while the session begins: streams with their types. */
  readonly waiting: [stream: WireStream, type: number][] = []
  /** Whether the session is about to begin: streams that come from now on are kept for it. */
  hasBegun = false
  isMoveRequested = false

  /** `parts` are those of the future session. */
  constructor(parts: LinkParts) {
    super(parts)
    const { peer, authenticated, listener } = parts
    // Only the agent pings: a session has one heartbeat of the server, and starts it when this standby becomes the session.
    this.watch({ isPinged: false })
    listener.online.standbys.add(this)
    listener.log.debug({ session: authenticated.sessionId, peer: peer.ip }, 'agent standby online')
  }

  /** Takes a stream that the agent opened, other than a heartbeat or the one that begins the session. */
  serve(stream: WireStream, type: number): void {
    if (this.hasBegun) this.waiting.push([stream, type])
    else answer(stream, buildAnswer(refusalText(refusals.standbyCalls())))
  }

  /** Asks the agent to move its standby elsewhere; no session begins here any more. */
  tellToMove(): boolean {
    this.isMoveRequested = true
    return tell(this.parts.mux, streamTypes.move, moveMessage) === undefined
  }

  protected release(reason: string): void {
    const { listener, peer, authenticated } = this.parts
    listener.online.standbys.remove(this)
    listener.log.debug({ session: authenticated.sessionId, peer: peer.ip, reason }, 'agent standby offline')
  }
}
