import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, test } from 'node:test'
import { IdSource } from '../../lib/ids.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { guardConnections } from './api-connections.ts'

let server: Server
/** Ends the answers that `/wait` holds back. */
let release = () => {}

before(async () => {
  // Far shorter timeouts than a real server's, so that a slow peer exceeds them soon.
  server = createServer(
    { headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 },
    (request, response) => {
      if (request.url !== '/wait') request.on('end', () => response.end(request.url)).resume()
      else release = () => response.end('waited')
    },
  )
  const log = createLog({ level: 'error', format: 'json', destination: { write() {} } })
  guardConnections(server, { ids: new IdSource({ now: Date.now }), log })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const slow: [what: string, bytes: string][] = [
  ['a head that does not end', 'GET / HTTP/1.1\r\nHost: x\r\nA:'],
  ['a body that does not come', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab'],
]

for (const [what, bytes] of slow) {
  test(`${what} is answered with 408 and closed`, async () => {
    const text = await exchange(bytes)
    assert.match(text, /^HTTP\/1\.1 408 /)
    assert.match(text, /"error_code":"ERR_REQUEST_TIMEOUT","status_code":408/)
  })
}

test('a refused peer that keeps its side open is disconnected', async () => {
  const arrives = once(server, 'connection')
  const socket = dial()
  socket.write('garbage\r\n\r\n')
  const [theirs] = await arrives
  // We never close, so it is the server that closes its socket.
  await once(theirs, 'close')
  socket.destroy()
})

test('a slow answer still comes before the refusal of the request behind it', async () => {
  const socket = dial()
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes
  })
  socket.write('GET /wait HTTP/1.1\r\nHost: x\r\n\r\ngarbage\r\n\r\n')
  await once(server, 'clientError')
  socket.write('more garbage')
  assert.equal(text, '')
  release()
  await closed(socket)
  assert.match(text, /^HTTP\/1\.1 200 OK.*waited.*HTTP\/1\.1 400 Refused.*ERR_BAD_REQUEST/s)
})

function dial() {
  const { port } = server.address() as AddressInfo
  return connect({ host: '127.0.0.1', port, allowHalfOpen: true }).on('error', () => {})
}

async function exchange(bytes: string): Promise<string> {
  const socket = dial()
  let text = ''
  socket.on('data', (more) => {
    text += more
  })
  socket.write(bytes)
  await closed(socket)
  return text
}

/** Resolves when the server closes; our side never closes first. */
async function closed(socket: ReturnType<typeof dial>): Promise<void> {
  await once(socket, 'end')
  socket.destroy()
}
