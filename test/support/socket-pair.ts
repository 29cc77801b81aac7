/** The two ends of a loopback connection, plain or with TLS, for tests of code that uses sockets. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { tlsIdentity } from './tls-identity.ts'

export interface SocketPair {
  readonly connected: Socket
  readonly accepted: Socket
}

/** Both ends allow half-open connections, and nothing has been read from either yet. */
export async function socketPair({ tls }: { tls: boolean }): Promise<SocketPair> {
  const options = { allowHalfOpen: true, ...(tls && (await tlsIdentity())) }
  const server = tls ? createTlsServer(options) : createServer(options)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port
  const to = { port, host: '127.0.0.1', allowHalfOpen: true }
  const connected = tls ? connectTls({ ...to, ...options, rejectUnauthorized: false }) : connect(to)
  const [[accepted]] = await Promise.all([
    once(server, tls ? 'secureConnection' : 'connection') as Promise<[Socket]>,
    once(connected, tls ? 'secureConnect' : 'connect'),
  ])
  server.close()
  return { connected, accepted }
}
