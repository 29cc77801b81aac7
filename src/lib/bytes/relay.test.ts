import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type RelayOptions, type RelayResult, relay } from './relay.ts'
import { socketStream } from './socket-stream.ts'

/** Opens a relay on loopback in front of `serve`; resolves with a connected client, and the result of the relay. */
async function through(serve: (socket: Socket) => unknown, limits: Pick<RelayOptions, 'idleMs' | 'lastBytesMs'> = {}) {
  const upstream = await listen(serve)
  const done = Promise.withResolvers<RelayResult>()
  const front = await listen((visitor) => {
    const service = connect({ port: portOf(upstream), host: '127.0.0.1', allowHalfOpen: true })
    relay(socketStream(visitor), socketStream(service), { ...limits, onDone: done.resolve })
  })
  const client = connect({ port: portOf(front), host: '127.0.0.1', allowHalfOpen: true })
  await once(client, 'connect')
  return { client, done: done.promise }
}

const servers: Server[] = []
after(() => {
  for (const server of servers) server.close()
})

async function listen(serve: (socket: Socket) => unknown): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => void serve(socket))
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port // it listens on a port
}

async function drained(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer) // no encoding is set
  return Buffer.concat(chunks)
}

describe('a relay', () => {
  test('each direction ends on its own: an upload, its end, then the answer', async () => {
    const { client, done } = await through(async (socket) => {
      const sent = await drained(socket)
      socket.end(createHash('sha256').update(sent).digest())
    })
    const upload = randomBytes(8_000_000)
    client.end(upload)
    const answer = await drained(client)
    assert.deepEqual(answer, createHash('sha256').update(upload).digest())
    assert.deepEqual(await done, { there: upload.length, back: 32, error: undefined })
  })

  test('a service that ends first can still be written to', async () => {
    const got = Promise.withResolvers<Buffer>()
    const { client, done } = await through((socket) => {
      socket.end('bye')
      got.resolve(drained(socket))
    })
    assert.equal((await drained(client)).toString(), 'bye')
    client.end('late')
    assert.equal((await got.promise).toString(), 'late')
    assert.equal((await done).error, undefined)
  })

  test('a service that answers and stops reading: its whole answer arrives, however late it is read', async () => {
    const answer = randomBytes(1_000_000)
    const gone = Promise.withResolvers<void>()
    const answers = (socket: Socket): void => {
      socket.on('error', () => {}).on('close', () => gone.resolve())
      // Unread data makes the system reset the connection when it is closed.
      socket.once('readable', () => socket.end(answer, () => setTimeout(() => socket.destroy(), 100)))
    }
    const { client, done } = await through(answers, { lastBytesMs: 5000 })
    client.on('error', () => {}).pause()
    client.write(Buffer.alloc(8_000_000))
    await gone.promise
    // By then the relay knows of the close, and still has to pass on most of the answer.
    await pause(200)
    const got = await drained(client)
    assert.equal(got.length, answer.length)
    assert.deepEqual(got, answer)
    client.destroy()
    assert.equal((await done).back, answer.length)
  })

  test('a service is not read for long for a visitor that has ended its side and left', async () => {
    let written = 0
    const gone = Promise.withResolvers<void>()
    const endless = (socket: Socket): void => {
      const chunk = Buffer.alloc(64 * 1024)
      const fill = (): void => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length
      }
      socket.on('drain', fill).on('error', () => {})
      socket.on('close', () => gone.resolve()).once('data', fill)
    }
    const { client, done } = await through(endless, { lastBytesMs: 500 })
    client.on('error', () => {}).end('go')
    await once(client, 'data')
    client.resetAndDestroy()
    await Promise.all([gone.promise, done])
    assert.ok(written < 32 * 1024 * 1024, `${written} bytes were written for nobody`)
  })

  test('a reader that stops makes the writer wait instead of filling memory', async () => {
    let written = 0
    const { client, done } = await through((socket) => {
      const chunk = Buffer.alloc(64 * 1024)
      const fill = (): void => {
        while (written < 64 * 1024 * 1024 && socket.write(chunk)) written += chunk.length
      }
      socket.on('drain', fill).on('error', () => {})
      fill()
    })
    client.pause()
    const settled = async (): Promise<number> => {
      let before = -1
      while (before !== written) {
        before = written
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      return written
    }
    assert.ok((await settled()) < 32 * 1024 * 1024, `${written} bytes went nowhere`)
    client.destroy()
    assert.ok((await done).error)
  })

  test('when the visitor is gone the connection to the service closes too', async () => {
    const lost = Promise.withResolvers<void>()
    const { client, done } = await through((socket) => {
      socket.on('error', () => {}).on('close', () => lost.resolve())
      socket.resume()
    })
    client.resetAndDestroy()
    await lost.promise
    assert.ok((await done).error)
  })

  test('an idle relay is ended', async () => {
    const { client, done } = await through((socket) => socket.on('error', () => {}).resume(), { idleMs: 50 })
    client.on('error', () => {}).resume()
    assert.match(String((await done).error), /nothing moved for 50 ms/)
  })
})

test('a handler that throws ends its own connection and no other', async () => {
  const server = await listen((socket) => {
    socketStream(socket).attach({
      data() {
        throw new Error('a fault in a handler')
      },
      end() {},
      drain() {},
      closed() {},
    })
  })
  const client = connect({ port: portOf(server), host: '127.0.0.1' })
  client.on('error', () => {}).write('x')
  await once(client, 'close')
})
