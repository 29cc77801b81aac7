/**
 * A leg: a further connection of an agent's session, at a data plane that does not have the session. It carries only visitors
 * of the session's tunnels.
 */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { answer, tell } from '../../link/wire/agent-rpc.ts'
import { Heartbeat, watchSilence } from '../../link/wire/heartbeat.ts'
import type { AuthRequest } from '../../link/wire/messages/auth.ts'
import { moveMessage } from '../../link/wire/messages/command-messages.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import type { Mux } from '../../link/wire/mux.ts'
import type { PeerTraits } from '../../link/wire/mux-peer.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'
import type { Authenticated } from './authenticate-agent.ts'
import { refusals, refusalText } from './bind-refusals.ts'
import { Dialler } from './dial-tunnel.ts'
import type { AgentPeer, DoorContext } from './listener-context.ts'
import { signsOfLife } from './signs-of-life.ts'

interface LegOptions {
  readonly mux: Mux
  readonly traits: PeerTraits
  readonly peer: AgentPeer
  readonly request: AuthRequest
  readonly authenticated: Authenticated
  readonly door: DoorContext
}

export class AgentLeg {
  /** The id of its session. */
  readonly id: string
  readonly credentialId: string
  readonly ip: string
  readonly #options: LegOptions
  readonly #dialler: Dialler
  readonly #heartbeat: Heartbeat
  readonly #stopWatching: () => void
  #isEnded = false

  /** Takes visitors from here on. */
  constructor(options: LegOptions) {
    const { mux, traits, peer, request, authenticated, door } = options
    this.id = authenticated.sessionId
    this.credentialId = authenticated.credentialId
    this.ip = peer.ip
    this.#options = options
    this.#dialler = new Dialler(mux, traits)
    const { silenceMs, intervalMs, toleranceMs } = signsOfLife(request, door.limits)
    const onDead = (): void => this.end('its agent gave no sign of life')
    this.#heartbeat = new Heartbeat(mux, { intervalMs, toleranceMs, onDead })
    this.#stopWatching = watchSilence(mux, { limitMs: silenceMs, onDead })
    door.online.legs.add(this)
    door.log.info({ session: this.id, leg: request.leg, peer: peer.ip }, 'agent leg online')
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Open connections of visitors: all streams that we opened, except the heartbeat. */
  get connections(): number {
    return Math.max(0, this.#options.mux.opened - 1)
  }

  get bytesIn(): number {
    return this.#options.mux.bytesIn
  }

  get bytesOut(): number {
    return this.#options.mux.bytesOut
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
    return tell(this.#options.mux, streamTypes.move, moveMessage) === undefined
  }

  end(reason: string): void {
    this.left(reason)
    this.#options.mux.close('no_error', reason)
  }

  /** Call this when the connection is closed. */
  left(reason: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#stopWatching()
    this.#heartbeat.stop()
    const { online, log } = this.#options.door
    online.legs.remove(this)
    log.info({ session: this.id, reason }, 'agent leg offline')
  }
}
