/** Dials a static backend: an address that the server itself can reach. */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { DialFault } from '../../model/dial.ts'

/** How long a service may take to accept a connection, in milliseconds. */
const DIAL_TIMEOUT_MS = 10_000

/**
 * with TLS the name is sent as SNI and the certificate is not verified, as agents do with their services. Never
 * rejects.
 */
export function dialStatic({
  host,
  port,
  tls,
}: {
  host: string
  port: number
  tls: boolean
}): Promise<ByteStream | DialFault> {
  return new Promise((resolve) => {
    const to = { host, port, allowHalfOpen: true }
    const socket = tls
      ? connectTls({ ...to, rejectUnauthorized: false, ...(isIP(host) === 0 && { servername: host }) })
      : connectTcp(to)
    const finish = (result: ByteStream | DialFault): void => {
      clearTimeout(timer)
      socket.off('error', failed)
      if (result instanceof DialFault) {
        socket.on('error', () => {})
        socket.destroy()
      }
      resolve(result)
    }
    const failed = (cause: Error): void =>
      finish(new DialFault('refused', `${host}:${port} cannot be reached`, { cause }))
    const timer = setTimeout(
      () => finish(new DialFault('timeout', `${host}:${port} did not accept in ${DIAL_TIMEOUT_MS} ms`)),
      DIAL_TIMEOUT_MS,
    )
    socket.once('error', failed)
    socket.once(tls ? 'secureConnect' : 'connect', () => finish(opened(socket)))
  })
}

function opened(socket: Socket): ByteStream {
  socket.setNoDelay(true)
  return socketStream(socket, { outlivesFailedWrite: true })
}
