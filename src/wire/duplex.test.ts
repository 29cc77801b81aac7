import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { after, before, describe, test } from 'node:test'
import { StreamDuplex } from './duplex.ts'
import { Mux } from './mux.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { socketTransport } from './transport.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

/** Two sessions over a real connection; the agent hands what it is asked to serve to `serve`. */
async function connected(serve: (duplex: StreamDuplex) => void) {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const near = connect((listener.address() as AddressInfo).port, '127.0.0.1')
  const [far] = (await once(listener, 'connection')) as [Socket]
  listener.close()
  const closed: (WireError | undefined)[] = []
  const mux = (role: 'server' | 'agent', socket: Socket, onStream: (stream: WireStream) => void): Mux =>
    new Mux({ role, transport: socketTransport(socket), onStream, onClosed: (error) => closed.push(error) })
  const server = mux('server', near, () => {})
  const agent = mux('agent', far, (stream) => serve(new StreamDuplex(stream)))
  return { server, agent, near, far, closed }
}

function open(mux: Mux): StreamDuplex {
  const stream = mux.open(typeHead(streamTypes.proxy))
  return stream instanceof WireError ? assert.fail(stream) : new StreamDuplex(stream)
}

describe('over a connection', () => {
  let pair: Awaited<ReturnType<typeof connected>>
  let failures: Error[] = []
  before(async () => {
    pair = await connected((duplex) => {
      duplex.on('error', (error) => failures.push(error))
      duplex.pipe(duplex)
    })
  })
  after(() => {
    pair.server.close()
    pair.near.destroy()
    pair.far.destroy()
  })

  test('a megabyte goes there and back, with an end of its own each way', async () => {
    const bytes = Buffer.from(Array.from({ length: 1024 * 1024 }, (_, i) => i % 251))
    const duplex = open(pair.server)
    duplex.end(bytes)
    assert.ok((await buffer(duplex)).equals(bytes))
  })

  test('many go at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const duplex = open(pair.server)
        duplex.end(`number ${i}`)
        return (await buffer(duplex)).toString()
      }),
    )
    assert.deepEqual(
      answers,
      Array.from({ length: 200 }, (_, i) => `number ${i}`),
    )
  })

  test('one that is destroyed early is reset, and the far end hears of it', async () => {
    failures = []
    const duplex = open(pair.server)
    duplex.write('x')
    await once(duplex, 'data')
    duplex.destroy()
    await once(duplex, 'close')
    // Ordered after the reset, so when this is answered the reset has been heard.
    const later = open(pair.server)
    later.end('y')
    await buffer(later)
    assert.equal(pair.agent.size, 0)
    assert.ok(failures.length <= 1)
  })

  test('writing to one that the peer reset fails', async () => {
    const duplex = open(pair.server)
    const failed = once(duplex, 'error')
    failures = []
    duplex.write('x')
    await once(duplex, 'data')
    pair.far.destroy()
    const [error] = await failed.catch((thrown: unknown) => [thrown])
    assert.ok(error instanceof WireError)
    await assert.rejects(
      pipeline(async function* () {
        yield 'z'
      }, duplex),
    )
  })
})
