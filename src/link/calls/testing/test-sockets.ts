/** Two connected sockets, for tests of what speaks over one. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export async function socketPair(): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port
  const a = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [[b]] = (await Promise.all([once(server, 'connection'), once(a, 'connect')])) as [[Socket], unknown]
  server.close()
  return [a, b]
}
