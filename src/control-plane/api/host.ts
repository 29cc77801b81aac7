/** Checks the Host of a request, which ends up in every `uri` of the answer: exactly one, and a valid host and port. */
import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { Refusal } from '../../model/errors.ts'

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$/i

/** Throws `Refusal` unless the request has exactly one valid Host (RFC 9112 §3.2). */
export function checkHost({ headersDistinct, httpVersion }: IncomingMessage): void {
  const [host, another] = headersDistinct.host ?? []
  if (host === undefined && httpVersion === '1.0') return
  if (host === undefined || another !== undefined) throw new Refusal('BAD_REQUEST', 'send the `Host` header once')
  if (!HOST.test(host) || !URL.canParse(`http://${host}`)) {
    throw new Refusal('BAD_REQUEST', 'the `Host` header is not a host name and port')
  }
}

/** The origin that the caller used; call it after `checkHost`. */
export function originOf(request: IncomingMessage): string {
  const { headers, socket } = request
  return `${schemeOf(request)}://${headers.host ?? `${socket.localAddress}:${socket.localPort}`}`
}

/** The scheme by which a request reached us; the client of a proxy in front may have used another. */
export function schemeOf({ socket }: Pick<IncomingMessage, 'socket'>): 'http' | 'https' {
  return socket instanceof TLSSocket ? 'https' : 'http'
}
