/** Connects to the service behind a tunnel: over TCP or a Unix socket, with TLS if the service uses it. */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import type { Upstream } from './upstream.ts'

/** How long a service may take to accept a connection and finish its TLS handshake, in milliseconds. */
const DIAL_TIMEOUT_MS = 10_000

/** Silence after which TCP keep-alive probes the service, in milliseconds. */
const KEEP_ALIVE_MS = 30_000

export interface UpstreamTls {
  /** PEM of the CAs to trust for the service's certificate; setting it turns the check on. */
  readonly ca?: string | undefined
  /** Checks the certificate; otherwise any is accepted, since the service is usually on the same machine. */
  readonly verify?: boolean | undefined
  /** The name to send as SNI and to expect in the certificate. */
  readonly serverName?: string | undefined
  /** The protocols to offer by ALPN. */
  readonly protocols?: readonly string[] | undefined
}

export interface ServiceDial {
  /** The bytes are TLS already. */
  readonly isPassthrough: boolean
  /** Bytes to send first, before any TLS handshake of ours. */
  readonly preface?: Buffer | undefined
}

/** The service cannot be reached; the message names it and says why. */
export class ServiceFault extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'UpstreamFault'
  }
}

/** Calls `done` once, with a connection that may be half open or with the fault; returns a function that cancels. */
export type DialUpstream = (request: ServiceDial, done: (result: Socket | ServiceFault) => void) => () => void

/** Keeps what all connections to one service share: its TLS settings, and which of its addresses accepted last. */
export function upstreamDialer(upstream: Upstream, tls: UpstreamTls = {}, timeoutMs = DIAL_TIMEOUT_MS): DialUpstream {
  const { at, isTls } = upstream
  const secure = isTls ? tlsWrapper(upstream, tls) : undefined
  const addresses = 'host' in at && at.host === 'localhost' ? ['127.0.0.1', '::1'] : undefined
  let preferred = 0

  return ({ isPassthrough, preface }, done) => {
    let socket: Socket
    let left = addresses?.length ?? 1
    let isDone = false
    const finish = (result: Socket | ServiceFault): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      done(result)
    }
    const fail = (error: NodeJS.ErrnoException): void => {
      socket.destroy()
      finish(new ServiceFault(fault(error, upstream), { cause: error }))
    }
    const cancel = (): void => {
      isDone = true
      clearTimeout(timer)
      socket.destroy()
    }
    const timer = setTimeout(() => fail(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs)

    const attempt = (): void => {
      const host = addresses?.[preferred]
      socket = connect({ ...at, ...(host !== undefined && { host }), allowHalfOpen: true, noDelay: true })
      const current = socket
      current.on('error', (error: NodeJS.ErrnoException) => {
        if (isDone || current !== socket) return
        if (--left > 0 && error.code !== 'EMFILE') {
          preferred = (preferred + 1) % (addresses?.length ?? 1)
          attempt()
        } else fail(error)
      })
      current.once('connect', () => {
        if (isDone) return
        current.setKeepAlive(true, KEEP_ALIVE_MS)
        left = 0
        if (preface) current.write(preface)
        if (!secure || isPassthrough) finish(stopListening(current))
        else {
          socket = secure(current, finish, fail)
        }
      })
    }
    attempt()
    return cancel
  }
}

/** Removes the listeners of the dial; the new owner of the connection adds its own. */
function stopListening(socket: Socket): Socket {
  return socket.removeAllListeners('error')
}

type Wrap = (socket: Socket, finish: (socket: Socket) => void, fail: (error: Error) => void) => Socket

function tlsWrapper({ at }: Upstream, { ca, verify = ca !== undefined, serverName, protocols }: UpstreamTls): Wrap {
  const secureContext: SecureContext = createSecureContext(ca === undefined ? {} : { ca })
  const host = serverName ?? ('host' in at ? at.host : 'localhost')
  let session: Buffer | undefined
  return (socket, finish, fail) => {
    const secured = connectTls({
      socket,
      secureContext,
      host,
      ...(isIP(host) === 0 && { servername: host }),
      rejectUnauthorized: verify,
      ...(protocols && { ALPNProtocols: [...protocols] }),
      ...(session && { session }),
    })
    // Emitted once the certificate has been checked; a resumed session does not check it again.
    secured.on('session', (ticket: Buffer) => {
      session = ticket
    })
    secured.on('error', fail)
    secured.once('close', () => fail(new Error('it closed the connection during the TLS handshake')))
    secured.once('secureConnect', () => {
      secured.removeAllListeners('close')
      finish(stopListening(secured))
    })
    return secured
  }
}

function fault(error: NodeJS.ErrnoException, { url }: Upstream): string {
  const { code = '' } = error
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${url}`
    case 'ENOENT':
      return `there is no socket at ${url}`
    case 'ENOTFOUND':
      return `the host of ${url} cannot be found`
    case 'EACCES':
      return `the agent is not allowed to open ${url}`
    case 'EMFILE':
    case 'ENFILE':
      return `too many open files: no connection to ${url} can be opened`
    default:
      if (/^(EPROTO|ERR_SSL_)/.test(code)) return `${url} does not speak TLS`
      return `${url} cannot be reached: ${error.message}`
  }
}
