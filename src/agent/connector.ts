/** Opens the connections of a session of an agent, each authenticated for its role. */
import type { Duplex } from 'node:stream'
import type { Secret } from '../lib/secrets/secret.ts'
import type { Commands } from './agent-commands.ts'
import { authRequest, type Introduction } from './auth-request.ts'
import { type DialServer, dialServer } from './connect.ts'
import { connectFirst } from './connect-first.ts'
import type { LegRequest } from './extra-connections.ts'
import type { ServerAddress } from './server-address.ts'
import { Session, type SessionParts } from './session.ts'
import type { Timers } from './timers.ts'

/** Who the agent is, and how it reaches its server. */
export interface SessionAgent extends Introduction {
  readonly server: ServerAddress
  /** PEM of the only CAs to trust; without it, those of the machine. */
  readonly ca?: string | undefined
  readonly dial?: ((options: DialServer & { readonly signal: AbortSignal }) => Promise<Duplex>) | undefined
}

/** The role of a connection; by default it is the session itself. */
interface Greeting {
  /** It takes over from one that is still open. */
  readonly isMoving?: boolean
  /** A further connection of the session. */
  readonly leg?: LegRequest
  /** A connection that only waits. */
  readonly isStandby?: boolean
  /** The server is about to close it. */
  readonly onMove?: () => void
}

interface ConnectorOptions {
  readonly agent: SessionAgent
  readonly commands: Commands
  readonly timers: Timers
  /** Aborted when the agent is closed. */
  readonly closing: AbortSignal
  /** The session to resume; its id is `''` for a new one. */
  readonly identity: () => { readonly clientId: string; readonly cookie: Secret }
  /** The node where a connection of this kind must not be; `''` for none. */
  readonly notAt: (greeting: Greeting) => string
  readonly onVisitor: (session: Session, visitor: Parameters<SessionParts['onVisitor']>[0]) => void
  readonly onStopTunnel: (session: Session, stop: Parameters<SessionParts['onStopTunnel']>[0]) => void
  readonly onMove: () => void
  readonly onNodes: SessionParts['onNodes']
}

export class Connector {
  readonly #options: ConnectorOptions

  constructor(options: ConnectorOptions) {
    this.#options = options
  }

  /** Connects to the first of several addresses that works; rejects with an `AgentFault`. */
  connect(servers: readonly ServerAddress[], greeting: Greeting): Promise<Session> {
    const { agent, timers, closing } = this.#options
    const { ca, dial = dialServer } = agent
    return connectFirst(servers, {
      timers,
      dial: (server, over) => dial({ server, ca, signal: AbortSignal.any([over, closing]) }),
      greet: (server, socket) => this.#greet(server, socket, greeting),
    })
  }

  async #greet(server: ServerAddress, socket: Duplex, greeting: Greeting): Promise<Session> {
    const { agent, commands, closing, identity, notAt, onVisitor, onStopTunnel, onMove, onNodes } = this.#options
    const { isMoving = false, leg, isStandby = false } = greeting
    const abort = (): void => void socket.destroy()
    closing.addEventListener('abort', abort)
    try {
      const session = await Session.start({
        ...{ socket, server, commands, onNodes },
        auth: authRequest(agent, { ...identity(), commands, isMoving, notAt: notAt(greeting), leg, isStandby }),
        onVisitor: (visitor) => onVisitor(session, visitor),
        onStopTunnel: (stop) => onStopTunnel(session, stop),
        onMove: () => {
          greeting.onMove?.()
          onMove()
        },
      })
      session.release()
      return session
    } finally {
      closing.removeEventListener('abort', abort)
    }
  }
}
