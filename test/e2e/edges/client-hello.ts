/** Captures the ClientHello of a TLS client. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

/** The first record that `dial` sends to a port that never answers. */
export async function clientHello(dial: (port: number) => Socket): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = dial((server.address() as AddressInfo).port)
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  let bytes: Buffer = Buffer.alloc(0)
  while (bytes.length < 5 || bytes.length < 5 + bytes.readUInt16BE(3)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    bytes = Buffer.concat([bytes, chunk])
  }
  socket.destroy()
  client.destroy()
  server.close()
  return bytes
}
