/**
 * A standby: an authenticated connection of an agent whose session is at another node. When that is lost, it begins here,
 * without another handshake or authentication.
 */

import { answer, tell } from '../../link/wire/agent-rpc.ts'
import { watchSilence } from '../../link/wire/heartbeat.ts'
import { moveMessage } from '../../link/wire/messages/command-messages.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import type { SessionOptions } from './agent-session.ts'
import { refusals, refusalText } from './bind-refusals.ts'
import { signsOfLife } from './signs-of-life.ts'

/** The parts of the future session. */
type StandbyParts = Omit<SessionOptions, 'former'>

export class AgentStandby {
  readonly credentialId: string
  readonly ip: string
  readonly parts: StandbyParts
  readonly #stopWatching: () => void
  /** Requests of its agent while the session begins: streams with their types. */
  readonly waiting: [stream: WireStream, type: number][] = []
  #hasBegun = false
  #isEnded = false
  #isToldToMove = false

  constructor(parts: StandbyParts) {
    const { mux, peer, request, authenticated, door } = parts
    this.credentialId = authenticated.credentialId
    this.ip = peer.ip
    this.parts = parts
    // Only the agent pings: a session has one heartbeat of the server, and starts it when this becomes one.
    this.#stopWatching = watchSilence(mux, {
      limitMs: signsOfLife(request, door.limits).silenceMs,
      onDead: () => this.end('its agent gave no sign of life'),
    })
    door.online.standbys.add(this)
    door.log.debug({ session: authenticated.sessionId, peer: peer.ip }, 'agent standby online')
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  get isToldToMove(): boolean {
    return this.#isToldToMove
  }

  /** The session is about to begin; streams that come from now on are kept for it. */
  begins(): void {
    this.#hasBegun = true
  }

  /** Takes a stream that the agent opened, other than a heartbeat or the one that begins the session. */
  serve(stream: WireStream, type: number): void {
    if (this.#hasBegun) this.waiting.push([stream, type])
    else answer(stream, buildAnswer(refusalText(refusals.standbyCalls())))
  }

  /** Asks the agent to move its standby elsewhere; no session begins here any more. */
  tellToMove(): boolean {
    this.#isToldToMove = true
    return tell(this.parts.mux, streamTypes.move, moveMessage) === undefined
  }

  end(reason: string): void {
    this.left(reason)
    this.parts.mux.close('no_error', reason)
  }

  /** Call this when the connection is closed or has become a session. */
  left(reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#stopWatching()
    const { door, peer, authenticated } = this.parts
    door.online.standbys.remove(this)
    door.log.debug({ session: authenticated.sessionId, peer: peer.ip, reason }, 'agent standby offline')
  }
}
