/** A minimal agent without a service: a TLS connection, a session, one HTTP endpoint, and heartbeats. */
import { connect, createSecureContext, type TLSSocket } from 'node:tls'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { call, type Message } from '../../src/link/wire/agent-rpc.ts'
import { answerPings, DEFAULT_INTERVAL_MS, DEFAULT_TOLERANCE_MS, Heartbeat } from '../../src/link/wire/heartbeat.ts'
import {
  type AuthAnswer,
  type AuthRequest,
  buildAuth,
  buildBegin,
  parseAuthAnswer,
  parseBeginAnswer,
} from '../../src/link/wire/messages/auth.ts'
import { buildBind, parseBindAnswer } from '../../src/link/wire/messages/bind.ts'
import { Mux } from '../../src/link/wire/mux.ts'
import { serverTraits } from '../../src/link/wire/mux-peer.ts'
import { type StreamType, streamTypes } from '../../src/link/wire/stream-types.ts'
import { socketTransport } from '../../src/link/wire/transport.ts'
import { GROWN_WINDOW_BYTES } from '../../src/link/wire/wire-bounds.ts'
import { WireError } from '../../src/link/wire/wire-error.ts'
import type { WireStream } from '../../src/link/wire/wire-stream.ts'

/** How long the server may take to answer, in milliseconds: as long as our agent waits for a bind. */
const ANSWER_MS = 20_000

export interface LightAgent {
  readonly host: string
  readonly port: number
  /** The source address, by which the server counts connections. */
  readonly localAddress?: string
  readonly authtoken: Secret
  /** The former session, to come back with it; undefined for a new agent. */
  readonly former?: Former
  readonly scheme: 'http' | 'https'
  /** Delays the handshake until its turn; by default it happens at once. */
  readonly inTurn?: (work: () => Promise<TLSSocket>) => Promise<TLSSocket>
  /** Called with each visitor's connection; without it, visitors are refused. */
  readonly onVisitor?: (stream: WireStream) => void
  /** Called once, when its session has ended for whatever reason. */
  readonly onLost: (error: WireError | undefined) => void
}

/** What an agent keeps from its session. */
export interface Former {
  readonly clientId: string
  readonly cookie: Secret
  readonly bindId: string
  readonly token: Secret
  readonly url: string
}

/** Resolves with the new session once the agent is online; rejects if it is refused. */
export async function goOnline(agent: LightAgent): Promise<Former> {
  const mux = await connected(agent)
  const { clientId, cookie } = await authenticated(mux, authOf(agent))
  return { clientId, cookie, ...(await bound(mux, agent)) }
}

/** Resolves with a standby connection of this agent, for `begin`. */
export async function standBy(agent: LightAgent & { readonly former: Former }): Promise<Mux> {
  const mux = await connected(agent)
  const { clientId, cookie } = agent.former
  const request = { ...authOf(agent), clientId: '', cookie: new Secret(''), standbyOf: { clientId, cookie } }
  const { isStandby } = await authenticated(mux, request)
  if (!isStandby) throw new Error('the server does not support standby connections')
  return mux
}

/** Goes online over a standby connection. */
export async function begin(mux: Mux, agent: LightAgent & { readonly former: Former }): Promise<Former> {
  const begun = asked(mux, streamTypes.begin, buildBegin({ isMoving: false }))
  const [answered, got] = await Promise.all([begun, bound(mux, agent)])
  const { error } = known(parseBeginAnswer(answered))
  if (error !== '') throw new Error(`an agent may not begin: ${error}`)
  return { ...agent.former, ...got }
}

async function bound(mux: Mux, agent: LightAgent): Promise<Pick<Former, 'bindId' | 'token' | 'url'>> {
  const { former } = agent
  const { error, answer } = known(parseBindAnswer(await asked(mux, streamTypes.bind, buildBind(bindOf(agent)))))
  if (error !== '') throw new Error(`a bind was refused: ${error}`)
  const { id: bindId, token, url } = answer
  if (former && former.url !== url) throw new Error(`an agent got ${url} instead of ${former.url}`)
  return { bindId, token, url }
}

async function connected(agent: LightAgent): Promise<Mux> {
  const { onVisitor, inTurn = (work) => work() } = agent
  let isLost = false
  const lost = (error: WireError | undefined): void => {
    if (!isLost) agent.onLost(error)
    isLost = true
  }
  const mux = new Mux({
    role: 'agent',
    transport: socketTransport(await inTurn(() => dial(agent))),
    onStream: (stream, type) => {
      if (type === streamTypes.heartbeat) answerPings(stream)
      else if (type === streamTypes.proxy && onVisitor) onVisitor(stream)
      else stream.reset('stream_refused')
    },
    onClosed: lost,
  })
  mux.adapt(serverTraits())
  new Heartbeat(mux, {
    onDead: (error) => {
      mux.close()
      lost(error)
    },
  })
  return mux
}

async function authenticated(mux: Mux, request: AuthRequest): Promise<AuthAnswer> {
  const { error, answer } = known(parseAuthAnswer(await asked(mux, streamTypes.auth, buildAuth(request))))
  if (error !== '') throw new Error(`an agent was refused: ${error}`)
  return answer
}

function authOf({ authtoken, former }: LightAgent): AuthRequest {
  return {
    versions: ['3', '2'],
    clientId: former?.clientId ?? '',
    authtoken,
    cookie: former?.cookie ?? new Secret(''),
    os: 'linux',
    arch: process.arch,
    version: '0.0.0',
    clientType: 'bench',
    userAgent: 'postern-bench/0.0.0',
    hostname: 'bench',
    metadata: '',
    heartbeatIntervalMs: DEFAULT_INTERVAL_MS,
    heartbeatToleranceMs: DEFAULT_TOLERANCE_MS,
    updateUnsupported: 'a bench',
    stopUnsupported: 'a bench',
    restartUnsupported: 'a bench',
    leg: 0,
    canMove: false,
    knowsNodes: false,
    isMoving: false,
    notAt: '',
    windowBytes: GROWN_WINDOW_BYTES,
  }
}

function bindOf({ former, scheme }: LightAgent) {
  return {
    id: former?.bindId ?? '',
    proto: scheme,
    forwardsTo: 'http://localhost:80',
    forwardsProto: '' as const,
    opts: {},
    token: former?.token ?? new Secret(''),
    metadata: '',
    bindings: [],
    poolingEnabled: false,
    name: '',
    description: '',
  }
}

/**
 * One for all agents, which does not check the server's certificate: real agents do that on their own machines, and
 * thousands of checks in one process would take CPU time from the server that is measured.
 */
const secureContext = createSecureContext()

function dial({ host, port, localAddress }: LightAgent): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      servername: 'localhost',
      secureContext,
      rejectUnauthorized: false,
      ...(localAddress && { localAddress }),
    })
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

async function asked(mux: Mux, type: StreamType, message: Message): Promise<Message> {
  return known(await call(mux, type, message, { timeoutMs: ANSWER_MS }))
}

function known<T>(result: T | WireError): T {
  if (result instanceof WireError) throw result
  return result
}
