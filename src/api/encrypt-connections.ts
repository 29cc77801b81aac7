/** TLS for a server of plain HTTP: its listeners for connections get those whose handshake is done, and no others. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createServer as createTlsServer, type SecureContextOptions } from 'node:tls'
import type { OwnCertificate } from './own-certificate.ts'

/** How long a handshake may take, in milliseconds. */
const HANDSHAKE_MS = 10_000

/** Handshakes that may be under way at once; further connections are closed before TLS costs anything. */
const MAX_SHAKING = 1024

export interface EncryptOptions {
  readonly certificate: OwnCertificate
  readonly tls: SecureContextOptions
  /** Whether there is room for a handshake of this address. */
  readonly mayShake: (ip: string) => boolean
}

/**
 * Call it when all who listen for connections of `server` are there, and before it listens; who is to see connections
 * before their handshake comes later. The result ends handshakes that are under way, and shows a renewed certificate.
 */
export function encryptConnections(
  server: Server,
  { certificate, tls, mayShake }: EncryptOptions,
): { renew(): void; stop(): void } {
  const shaking = new Map<string, Socket>()
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
        done(error as Error) // what is thrown here comes from Node
      }
    },
  })
  secure.on('secureConnection', (socket) => {
    shaking.delete(pathOf(socket))
    for (const listener of listeners) Reflect.apply(listener, server, [socket])
  })
  secure.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('connection', (socket: Socket) => {
    // Who leaves during the handshake is nobody's loss; without a listener it would be fatal.
    socket.on('error', () => {})
    if (socket.destroyed) return
    if (shaking.size >= MAX_SHAKING || !mayShake(socket.remoteAddress ?? '')) {
      socket.destroy()
      return
    }
    const path = pathOf(socket)
    shaking.set(path, socket)
    socket.once('close', () => {
      if (shaking.get(path) === socket) shaking.delete(path)
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

/** What a socket and the TLS socket over it have in common. */
function pathOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
