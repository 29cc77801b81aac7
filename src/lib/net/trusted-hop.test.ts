import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Peer, peerOf } from './peer.ts'
import { proxyHeaderOf } from './proxy-protocol.ts'
import { meetVisitors } from './trusted-hop.ts'

let server: Server
let networks: readonly string[] = []
let met = Promise.withResolvers<{ visitor: Peer | undefined; socket: Socket }>()

before(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    const peer = peerOf(socket, 7)
    if (peer) meetVisitors(networks)(socket, peer, (visitor) => met.resolve({ visitor, socket }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => server.close())

/** Sends `chunks` one by one, from a hop if `trusted`; resolves with the visitor and the bytes left to read. */
async function visit(trusted: boolean, chunks: readonly Buffer[]): Promise<{ ip: string | undefined; read: string }> {
  networks = trusted ? ['127.0.0.0/8'] : []
  met = Promise.withResolvers()
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true })
  await once(client, 'connect')
  for (const chunk of chunks) {
    client.write(chunk)
    await new Promise(setImmediate)
  }
  client.end()
  const { visitor, socket } = await met.promise
  const read: Buffer[] = []
  if (visitor) for await (const chunk of socket) read.push(chunk as Buffer) // no encoding is set
  socket.destroy()
  client.destroy()
  return { ip: visitor?.ip, read: Buffer.concat(read).toString() }
}

const ends = { ip: '192.0.2.7', port: 4000, serverIp: '198.51.100.1', serverPort: 443 }

describe('a connection from a trusted hop', () => {
  for (const version of [1, 2] as const) {
    const header = proxyHeaderOf(version, ends)

    test(`counts as that of the visitor in a header of version ${version}`, async () => {
      assert.deepEqual(await visit(true, [Buffer.concat([header, Buffer.from('hello')])]), {
        ip: '192.0.2.7',
        read: 'hello',
      })
    })

    test(`may send a header of version ${version} byte by byte`, async () => {
      const bytes = [...header, ...Buffer.from('hi')].map((byte) => Buffer.from([byte]))
      assert.deepEqual(await visit(true, bytes), { ip: '192.0.2.7', read: 'hi' })
    })
  }

  test('is refused without a header', async () => {
    assert.equal((await visit(true, [Buffer.from('GET / HTTP/1.1\r\n\r\n')])).ip, undefined)
  })

  test('is refused when it ends within the header', async () => {
    assert.equal((await visit(true, [proxyHeaderOf(1, ends).subarray(0, 10)])).ip, undefined)
  })

  test('is the hop itself when the header says so', async () => {
    assert.deepEqual(await visit(true, [Buffer.from('PROXY UNKNOWN\r\nx')]), { ip: '127.0.0.1', read: 'x' })
  })

  test('names a visitor with an IPv4-mapped address as IPv4, so that rules for IPv4 apply', async () => {
    const mapped = Buffer.from('PROXY TCP6 ::ffff:192.0.2.9 ::1 1 2\r\n')
    assert.equal((await visit(true, [mapped])).ip, '192.0.2.9')
  })
})

test('a header from anybody else is ordinary data and names nobody', async () => {
  const header = proxyHeaderOf(1, ends)
  assert.deepEqual(await visit(false, [header]), { ip: '127.0.0.1', read: header.toString() })
})
