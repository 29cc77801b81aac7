/** TLS for a plain HTTP server: its connection listeners only get connections whose handshake is done. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContextOptions } from 'node:tls'
import { SharedSlots } from '../../lib/limits/shared-slots.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import { shared } from '../../model/shared.ts'
import type { OwnCertificate } from './own-certificate.ts'

/** How long a handshake may take, in milliseconds. */
const HANDSHAKE_MS = 10_000

interface EncryptOptions {
  readonly certificate: OwnCertificate
  readonly tls: SecureContextOptions
  /** Whether this address may start another handshake. */
  readonly mayShake: (ip: string) => boolean
}

/**
 * Call it once all connection listeners of `server` are added, and before it listens; listeners added later see
 * connections before their handshake. The result can renew the certificate and end handshakes under way.
 */
export function encryptConnections(
  server: Server,
  { certificate, tls, mayShake }: EncryptOptions,
): { renew(): void; stop(): void } {
  const shaking = new Map<string, Socket>()
  const slots = new SharedSlots<Socket>(shared.apiHandshakes.most)
  const over = (path: string): void => {
    const socket = shaking.get(path)
    if (socket) slots.leave(socket)
    shaking.delete(path)
  }
  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  const secure = createTlsServer({
    ...tls,
    ...certificate.own,
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_MS,
    SNICallback: (name, done) => {
      try {
        done(null, certificate.contextFor(name))
      } catch (error) {
        done(error as Error) // only Node throws here
      }
    },
  })
  secure.on('secureConnection', (socket) => {
    over(pathOf(socket))
    for (const listener of listeners) Reflect.apply(listener, server, [socket])
  })
  secure.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('connection', (socket: Socket) => {
    // A peer may leave during the handshake; without a listener its error would be fatal.
    socket.on('error', () => {})
    if (socket.destroyed) return
    const { remoteAddress = '' } = socket
    if (!mayShake(remoteAddress)) {
      socket.destroy()
      return
    }
    slots.take(socket, clientKeyOf(remoteAddress))?.destroy()
    const path = pathOf(socket)
    shaking.set(path, socket)
    socket.once('close', () => {
      if (shaking.get(path) === socket) over(path)
    })
    secure.emit('connection', socket)
  })
  return {
    renew() {
      certificate.renew()
      secure.setSecureContext({ ...tls, ...certificate.own })
    },
    stop() {
      for (const socket of shaking.values()) socket.destroy()
    },
  }
}

/** Identifies a socket and the TLS socket over it. */
function pathOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
