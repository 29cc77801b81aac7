/** Services that answer before they have read the whole request, and close: the answer reaches the visitor. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { tlsIdentity } from '../support/tls-identity.ts'
import { tcpUpstream, tlsUpstream, type Upstream } from '../support/upstream.ts'
import { ownAgent } from './edges/agents.ts'
import { type HttpsEdge, World } from './edges/world.ts'

/** How often each case is tried: either the answer or the failed write may be seen first. */
const ROUNDS = 10

/** More than all buffers on the path hold, in bytes. */
const UPLOAD_BYTES = 8 * 1024 * 1024

const page = 'x'.repeat(20_000)
const answer = `HTTP/1.1 413 Content Too Large\r\nContent-Length: ${page.length}\r\nConnection: close\r\n\r\n${page}`

/** How a service refuses an upload after it has read a part. */
const refusals: Record<string, (socket: Socket) => void> = {
  'closes with the rest unread': (socket) => {
    socket.pause()
    socket.write(answer, () => socket.destroy())
  },
  'ends and closes a moment later': (socket) => {
    socket.pause()
    socket.end(answer, () => setImmediate(() => socket.destroy()))
  },
}

let world: World
before(async () => {
  world = await World.start()
})
after(() => world.stop())

for (const [name, refuse] of Object.entries(refusals)) {
  describe(`a service that answers and ${name}`, () => {
    let service: Upstream
    before(async () => {
      service = await tcpUpstream(world, (socket) => socket.once('data', () => refuse(socket)))
    })

    const uploadsTo = async ({ name }: HttpsEdge): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        const { status, body } = await upload(name)
        assert.deepEqual([round, status, body.length], [round, 413, page.length])
      }
    }

    test('reaches the visitor with its answer, when the server dials it', async () => {
      await uploadsTo(await world.httpsTo(service))
    })

    test('reaches the visitor with its answer, over TLS', async (t) => {
      const { cert, key } = await tlsIdentity()
      const secure = await tlsUpstream(t, { cert, key }, (socket) => socket.once('data', () => refuse(socket)))
      const backend = await world.toAddress(secure, { tls: true })
      await uploadsTo(await world.httpsEdge({ routes: [{ backend }] }))
    })

    test('reaches the visitor with its answer, through a tunnel', async (t) => {
      const labels = { early: name.replaceAll(' ', '-') }
      const backend = await world.toBackend('tunnel_group', { labels })
      const agent = await ownAgent(t, world)
      await agent.forward({ addr: service.address, labels })
      await uploadsTo(await world.httpsEdge({ routes: [{ backend }] }))
    })
  })
}

async function upload(servername: string): Promise<{ status: number; body: Buffer }> {
  const { httpsPort: port, ca } = world.platform
  const headers = { host: servername, 'content-length': String(UPLOAD_BYTES) }
  const to = { host: '127.0.0.1', port, servername, ca, agent: false as const }
  const posting = request({ ...to, method: 'POST', path: '/', headers })
  // The connection may close while the rest of the upload is under way.
  posting.on('error', () => {})
  posting.end(Buffer.alloc(UPLOAD_BYTES))
  const closed = once(posting, 'close').then(() => assert.fail('no answer'))
  const [response] = (await Promise.race([once(posting, 'response'), closed])) as [IncomingMessage]
  const body = await buffer(response)
  posting.destroy()
  return { status: response.statusCode ?? 0, body }
}
