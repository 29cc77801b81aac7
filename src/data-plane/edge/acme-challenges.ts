/**
 * Answers the challenges of ACME authorities, before any edge is chosen: over plain HTTP (RFC 8555 §8.3) and in a TLS handshake
 * (RFC 8737).
 */
import type { Socket } from 'node:net'
import { createServer } from 'node:tls'
import { HeaderList } from '../../lib/http/header-list.ts'
import { challengeCertificate } from '../../lib/x509/challenge-certificate.ts'
import type { NameChallenge } from '../../link/planes/plane-calls.ts'
import type { Exchange } from '../requests/http-exchange.ts'
import { type ClientHello, normalServerName } from './client-hello.ts'
import type { CertificatePair } from './served-certificates.ts'

const PATH = '/.well-known/acme-challenge/'

/** RFC 8737 §4. */
const PROTOCOL = 'acme-tls/1'

/** How long a challenge handshake may take, in milliseconds. */
const HANDSHAKE_MS = 10_000

export class Challenges {
  /** By name, for names with an order in progress only; all other traffic is unaffected. */
  readonly #asked: Pick<ReadonlyMap<string, NameChallenge>, 'get'>
  /** Created on first use. */
  readonly #pairs = new WeakMap<NameChallenge, CertificatePair>()

  constructor(asked: Pick<ReadonlyMap<string, NameChallenge>, 'get'>) {
    this.#asked = asked
  }

  /** Answers a request on the plain listener if it checks a challenge; returns whether it did. */
  answerHttp = (exchange: Pick<Exchange, 'head' | 'respond'>): boolean => {
    const { head } = exchange
    if (!head.target.startsWith(PATH)) return false
    if (head.method !== 'GET' && head.method !== 'HEAD') return false
    const asked = this.#asked.get(hostOf(head.authority))
    if (asked?.kind !== 'http-01' || head.target !== PATH + asked.token) return false
    const headers = HeaderList.of([
      ['content-type', 'application/octet-stream'],
      ['cache-control', 'no-store'],
    ])
    const body = Buffer.from(asked.answer)
    const writer = exchange.respond({ status: 200, reason: 'OK', headers, body: body.length })
    if (head.method === 'GET') writer.write(body)
    writer.end()
    return true
  }

  /** The certificate for a handshake that checks a challenge; undefined for any other handshake. */
  forHandshake({ serverName, alpn }: Pick<ClientHello, 'serverName' | 'alpn'>): CertificatePair | undefined {
    if (alpn.length !== 1 || alpn[0] !== PROTOCOL) return undefined
    const asked = this.#asked.get(serverName)
    if (asked?.kind !== 'tls-alpn-01') return undefined
    let pair = this.#pairs.get(asked)
    if (!pair) {
      pair = challengeCertificate(asked.name, asked.answer)
      this.#pairs.set(asked, pair)
    }
    return pair
  }
}

/** Takes over a connection with all its bytes unread, shows the certificate, and closes. */
export function showCertificate(socket: Socket, { cert, key }: CertificatePair): void {
  const server = createServer({ cert, key, ALPNProtocols: [PROTOCOL], minVersion: 'TLSv1.2', sessionTimeout: 1 })
  const overdue = setTimeout(() => socket.destroy(), HANDSHAKE_MS)
  socket.once('close', () => clearTimeout(overdue))
  server.on('secureConnection', (secured) => {
    secured.on('error', () => secured.destroy())
    secured.resume()
    secured.end()
  })
  server.on('tlsClientError', (_, secured) => secured.destroy())
  socket.allowHalfOpen = false
  server.emit('connection', socket)
}

/** The name in a `Host`, normalised. */
function hostOf(authority: string): string {
  const [host = ''] = authority.split(':')
  return normalServerName(host)
}
