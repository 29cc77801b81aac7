/** One connection of an agent: unauthenticated at first, then a session, a leg, or a standby that becomes a session later. */

import { Secret } from '../../lib/secrets/secret.ts'
import { answer, type Message, readMessage } from '../../link/wire/agent-rpc.ts'
import { answerPings } from '../../link/wire/heartbeat.ts'
import {
  type AuthRequest,
  type Begin,
  buildAuthAnswer,
  buildAuthRefusal,
  buildBeginAnswer,
  parseAuth,
  parseBegin,
} from '../../link/wire/messages/auth.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import { buildServerInfo } from '../../link/wire/messages/tunnel-messages.ts'
import { Mux } from '../../link/wire/mux.ts'
import { agreeWindow, peerTraits } from '../../link/wire/mux-peer.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import type { Transport } from '../../link/wire/transport.ts'
import { UNAUTHENTICATED_BYTES } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import { AgentSession } from './agent-session.ts'
import { type Authenticated, authenticate } from './authenticate-agent.ts'
import { BindRefusal, refusalText } from './interfaces.ts'
import { AgentLeg } from './leg.ts'
import type { AgentPeer, ListenerContext } from './listener-context.ts'
import type { PendingLogin } from './pending-login.ts'
import { sealCookie } from './resume.ts'
import { AgentStandby } from './standby.ts'

interface ConnectionOptions {
  readonly transport: Transport
  readonly peer: AgentPeer
  /** Is told of exactly one outcome, once. */
  readonly outcome: Pick<PendingLogin, 'passed' | 'failed'>
  readonly listener: ListenerContext
}

export class AgentConnection {
  readonly #options: ConnectionOptions
  readonly #mux: Mux
  #hasAsked = false
  #grace: NodeJS.Timeout | undefined
  #session: AgentSession | AgentLeg | AgentStandby | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#mux = new Mux({
      role: 'server',
      transport: options.transport,
      maxUntrustedBytes: UNAUTHENTICATED_BYTES,
      onStream: (stream, type) => this.#serve(stream, type),
      onClosed: (error) => this.#closed(error),
    })
  }

  #serve(stream: WireStream, type: number): void {
    if (type === streamTypes.heartbeat) answerPings(stream)
    else if (type === streamTypes.serverInfo) this.#tellRegion(stream)
    else if (type === streamTypes.auth) this.#hear(stream)
    else if (this.#session instanceof AgentStandby && !this.#session.hasBegun && type === streamTypes.begin) {
      this.#begin(stream, this.#session)
    } else if (this.#session) void this.#session.serve(stream, type)
    else answer(stream, buildAnswer(refusalText(refusals.notAuthenticated())))
  }

  #tellRegion(stream: WireStream): void {
    readMessage(stream, () => answer(stream, buildServerInfo(this.#options.listener.online.region)), {
      maxBytes: UNAUTHENTICATED_BYTES,
    })
  }

  #hear(stream: WireStream): void {
    if (this.#hasAsked) {
      answer(stream, buildAuthRefusal(refusalText(refusals.authTwice())))
      return
    }
    this.#hasAsked = true
    const { log } = this.#options.listener
    readMessage(
      stream,
      (message) => {
        this.#decide(stream, message).catch((error: unknown) => {
          log.error({ peer: this.#options.peer.ip, error }, 'agent authentication failed with an internal error')
          this.#refuse(stream, refusals.broken(), { isFault: false })
        })
      },
      { maxBytes: UNAUTHENTICATED_BYTES },
    )
  }

  async #decide(stream: WireStream, message: Message | WireError): Promise<void> {
    const request = message instanceof WireError ? message : parseAuth(message)
    if (request instanceof WireError) {
      this.#refuse(stream, refusals.authInvalid(request.message), { isFault: true })
      return
    }
    const authenticated = await authenticate(request, this.#options.listener)
    if (this.#mux.isClosed) return
    if (authenticated instanceof BindRefusal) {
      this.#refuse(stream, authenticated, { isFault: authenticated.ngrok !== refusals.storeAway().ngrok })
      return
    }
    const { listener, peer } = this.#options
    const { isMoving, notAt, heldPlanes = [] } = request
    const { as, isResumed } = authenticated
    const isHeld = notAt !== '' && notAt === listener.nodes?.id
    const refusal = as === 'leg' ? await this.#legRefusal(authenticated, heldPlanes) : isHeld && refusals.nodeHeld()
    if (this.#mux.isClosed) return
    if (refusal) {
      this.#refuse(stream, refusal, { isFault: false })
      return
    }
    const former =
      isResumed && as === 'session' ? await listener.online.returning(authenticated.sessionId, { isMoving }) : []
    if (this.#mux.isClosed) return
    // The restriction may have been enforced while this connection authenticated.
    if (listener.admits?.(peer) === false) this.#refuse(stream, refusals.addressRestricted(), { isFault: false })
    else this.#admit(stream, request, authenticated, former)
  }

  /** Why a leg is refused: its session must be online elsewhere and have no other leg here. */
  async #legRefusal(who: Authenticated, heldPlanes: readonly string[]): Promise<BindRefusal | undefined> {
    const { online, planeId, log } = this.#options.listener
    if (heldPlanes.includes(planeId) || online.registry.liveSession(who.sessionId)) return refusals.legHeld()
    try {
      const { sessionId, credentialId } = who
      return (await online.legs.mayCome({ sessionId, credentialId })) ? undefined : refusals.legUnknown()
    } catch (error) {
      log.warn({ session: who.sessionId, error }, 'cannot look up the session of an agent leg')
      return refusals.storeAway()
    }
  }

  #refuse(stream: WireStream, refusal: BindRefusal, options: { readonly isFault: boolean }): void {
    if (this.#mux.isClosed) return
    const lateMs = this.#options.outcome.failed(refusal.message, options)
    const refuse = (): void => {
      answer(stream, buildAuthRefusal(refusalText(refusal)))
      // Some agents drop unread data when the session ends, so they get time to end it themselves.
      this.#grace = setTimeout(() => this.#mux.close(), this.#options.listener.limits.refusalMs)
    }
    if (lateMs > 0) this.#grace = setTimeout(refuse, lateMs)
    else refuse()
  }

  #admit(
    stream: WireStream,
    request: AuthRequest,
    authenticated: Authenticated,
    former: readonly FormerLabelTunnel[],
  ): void {
    const { listener, peer, outcome } = this.#options
    const windowBytes = agreeWindow(request.windowBytes)
    const traits = peerTraits(request.userAgent, { agreedWindow: windowBytes })
    this.#mux.adapt(traits)
    outcome.passed()
    const { sessionId, credentialId, startedAt, as } = authenticated
    // Written before the session begins: its heartbeat must not come first.
    answer(
      stream,
      buildAuthAnswer({
        version: authenticated.version,
        clientId: sessionId,
        cookie: new Secret(sealCookie(listener.seal, { sessionId, credentialId, startedAt })),
        serverVersion: listener.version,
        region: listener.online.region,
        accountName: listener.online.domain,
        planName: '',
        banner: '',
        sessionDurationS: 0,
        sessionId,
        windowBytes,
        // Only agents that can move understand it.
        planeId: request.canMove && listener.planeCount > 1 ? listener.planeId : '',
        planeCount: listener.planeCount,
        nodeId: request.knowsNodes ? (listener.nodes?.id ?? '') : '',
        nodeAddresses: listener.nodes?.addresses() ?? [],
        isStandby: as === 'standby',
      }),
    )
    const parts = { mux: this.#mux, traits, peer, request, authenticated, listener }
    if (as === 'standby') this.#session = new AgentStandby(parts)
    else if (as === 'leg') this.#session = new AgentLeg(parts)
    else this.#session = new AgentSession(parts, former)
    void this.#checkAgain(this.#session)
  }

  #begin(stream: WireStream, standby: AgentStandby): void {
    standby.hasBegun = true
    readMessage(stream, (message) => {
      const request = message instanceof WireError ? message : parseBegin(message)
      if (request instanceof WireError) standby.end(`its session cannot begin: ${request.message}`)
      else void this.#beginAs(stream, standby, request)
    })
  }

  async #beginAs(stream: WireStream, standby: AgentStandby, request: Begin): Promise<void> {
    const over = await this.#options.listener.online.standbys.turns.take()
    try {
      const session = await this.#begun(stream, standby, request)
      if (session) await Promise.all(standby.waiting.map(([waiting, type]) => session.serve(waiting, type)))
    } finally {
      over()
    }
  }

  /** Turns the standby into a session; undefined when that is not possible. */
  async #begun(stream: WireStream, standby: AgentStandby, { isMoving }: Begin): Promise<AgentSession | undefined> {
    const { online, nodes, log } = this.#options.listener
    const { sessionId } = standby.parts.authenticated
    // The agent may have left while it waited for its turn.
    if (standby.isEnded) return undefined
    let former: readonly FormerLabelTunnel[]
    try {
      former = await online.beginning(sessionId, { isMoving })
    } catch (error) {
      log.warn({ session: sessionId, error }, 'standby cannot become a session: lookup of its former session failed')
      // Without the database, the session's former node may take it back, but this node may not begin it.
      standby.end('its former session could not be looked up')
      return undefined
    }
    if (standby.isEnded || this.#session !== standby) return undefined
    if (standby.isMoveRequested) {
      standby.end('the server is stopping')
      return undefined
    }
    standby.left('it became a session')
    // Written before the session begins: its heartbeat must not come first.
    answer(stream, buildBeginAnswer({ nodeAddresses: nodes?.addresses() ?? [] }))
    const session = new AgentSession(standby.parts, former)
    this.#session = session
    void this.#checkAgain(session)
    return session
  }

  /** The credential may have been deleted between its lookup and now, when the session was not listed yet (D25). */
  async #checkAgain(session: AgentSession | AgentLeg | AgentStandby): Promise<void> {
    const { online, log } = this.#options.listener
    const { credentialId } = session
    try {
      if (!(await online.currentCredential(credentialId))) session.end('its credential was deleted')
    } catch (error) {
      log.warn({ credential: credentialId, error }, 'credential cannot be looked up')
    }
  }

  #closed(error: WireError | undefined): void {
    clearTimeout(this.#grace)
    if (this.#session) this.#session.left(reasonOf(error))
    else this.#options.outcome.failed(reasonOf(error), { isFault: error?.side === 'peer' })
  }
}

function reasonOf(error: WireError | undefined): string {
  return error?.message ?? 'the connection was closed'
}
