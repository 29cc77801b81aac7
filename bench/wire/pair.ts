/** Makes both ends of a loopback connection in this process, plain or TLS. */

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { makeIdentity } from '../../test/support/make-certificate.ts'

export interface Pair {
  readonly near: Socket
  readonly far: Socket
  close(): void
}

export async function connectPair({ secure }: { secure: boolean }): Promise<Pair> {
  const listener = secure ? createTlsServer(await certificate()) : createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo // it listens on TCP
  const accepted = once(listener, secure ? 'secureConnection' : 'connection') as Promise<[Socket]>
  const near = secure ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }) : connect(port, '127.0.0.1')
  const [far] = await accepted
  listener.close()
  for (const socket of [near, far]) socket.on('error', () => {})
  return {
    near,
    far,
    close() {
      near.destroy()
      far.destroy()
    },
  }
}

/** An expired certificate, which is not checked here. */
async function certificate(): Promise<{ key: string; cert: string }> {
  const { certificatePem, privateKeyPem } = await makeIdentity({ name: 'CN=localhost' })
  return { key: privateKeyPem, cert: certificatePem }
}
