/** Connects to the server over TLS, checks its certificate, and explains failures to people. */
import { isIP } from 'node:net'
import { connect, getCACertificates, type TLSSocket } from 'node:tls'
import { AgentFault } from './agent-fault.ts'
import { formatServer, type ServerAddress } from './server-address.ts'

/** How long connecting may take, with the TLS handshake, in milliseconds. */
const DIAL_TIMEOUT_MS = 10_000

/** Silence after which TCP keep-alive probes the server, in milliseconds. */
const KEEP_ALIVE_MS = 15_000

export interface DialServer {
  readonly server: ServerAddress
  /** PEM of the only CAs to trust; without it, those of the machine. */
  readonly ca?: string | undefined
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Resolves with a TLS connection; rejects with an `AgentFault`. */
export function dialServer({ server, ca, timeoutMs = DIAL_TIMEOUT_MS, signal }: DialServer): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const { host, port } = server
    const socket = connect({
      host,
      port,
      // SNI allows names only, no IP addresses.
      ...(isIP(host) === 0 && { servername: host }),
      ca: ca === undefined ? machineCas() : ca,
      minVersion: 'TLSv1.2',
    })
    const settle = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.removeAllListeners()
    }
    const fail = (fault: AgentFault): void => {
      settle()
      // A destroyed socket may still emit an error.
      socket.on('error', () => {})
      socket.destroy()
      reject(fault)
    }
    const abort = (): void => fail(new AgentFault('closed', 'the agent was closed'))
    const timer = setTimeout(() => fail(new AgentFault('unreachable', slow(server, timeoutMs))), timeoutMs)
    if (signal?.aborted) return abort()
    signal?.addEventListener('abort', abort)
    socket.once('error', (error) => fail(dialFault(error, server)))
    socket.once('close', () => fail(new AgentFault('unreachable', closedEarly(server))))
    socket.once('secureConnect', () => {
      settle()
      socket.setNoDelay(true)
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      resolve(socket)
    })
  })
}

/** The CAs that Node brings and those of this machine, such as a company's own. */
function machineCas(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])]
}

function dialFault(error: NodeJS.ErrnoException, server: ServerAddress): AgentFault {
  // A host with several addresses gives one error for each; the first is enough.
  const cause: NodeJS.ErrnoException =
    error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error
  const code = cause.code ?? ''
  const at = formatServer(server)
  const untrusted = certificateFault(code, server, cause)
  if (untrusted !== undefined) return new AgentFault('untrusted', untrusted, { cause: error })
  return new AgentFault('unreachable', networkFault(code, at, server.host) ?? `${at}: ${cause.message}`, {
    cause: error,
  })
}

function networkFault(code: string, at: string, host: string): string | undefined {
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${at}; is the server running, and is this its port for agents?`
    case 'ENOTFOUND':
      return `there is no host called ${host}; check \`server\``
    case 'EAI_AGAIN':
      return `${host} cannot be resolved; is this machine online?`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ENETDOWN':
      return `there is no route to ${at}; is this machine online?`
    case 'ETIMEDOUT':
      return `${at} does not respond; check \`server\`, and any firewall on the way`
    case 'ECONNRESET':
    case 'EPIPE':
      return `${at} closed the connection during the TLS handshake`
    case 'CERT_NOT_YET_VALID':
      return `the certificate of ${at} is not valid yet; is the clock of this machine right?`
    default:
      return undefined
  }
}

const unknownIssuer: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
])

function certificateFault(code: string, server: ServerAddress, cause: Error): string | undefined {
  const at = formatServer(server)
  if (unknownIssuer.has(code)) {
    return (
      `the certificate of ${at} is not signed by a CA that this machine trusts; ` +
      'give the CA of the server as `ca` (flag --ca): the file `ca.pem` in its data folder'
    )
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = 'cert' in cause ? namesOf(cause.cert) : ''
    return (
      `the certificate of ${at} is for other names${names}; use one of them as \`server\`, ` +
      `or add ${server.host} to \`--agent-names\` of the server, or to its agent ingresses`
    )
  }
  if (code === 'CERT_HAS_EXPIRED') return `the certificate of ${at} has expired`
  if (/^(EPROTO|ERR_SSL_)/.test(code)) return `${at} does not speak TLS like a Postern server; check \`server\``
  return undefined
}

function namesOf(certificate: unknown): string {
  if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate)) return ''
  return typeof certificate.subjectaltname === 'string' ? ` (${certificate.subjectaltname})` : ''
}

function slow(server: ServerAddress, timeoutMs: number): string {
  return `${formatServer(server)} did not respond within ${timeoutMs / 1000} s; check \`server\`, and any firewall on the way`
}

function closedEarly(server: ServerAddress): string {
  return `${formatServer(server)} closed the connection during the TLS handshake`
}
