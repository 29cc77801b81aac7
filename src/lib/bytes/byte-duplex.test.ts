import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { ByteDuplex } from './byte-duplex.ts'
import { socketStream } from './socket-stream.ts'

/** A duplex over a real connection, and the socket at the other end. */
async function connected(): Promise<{ duplex: ByteDuplex; far: Socket }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo // it listens on a port
  const near = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [far] = (await once(listener, 'connection')) as [Socket]
  listener.close()
  return { duplex: new ByteDuplex(socketStream(near)), far }
}

describe('a stream as a duplex', () => {
  test('eight megabytes go in each direction, and each direction ends on its own', async () => {
    const { duplex, far } = await connected()
    far.pipe(far)
    const bytes = randomBytes(8 * 1024 * 1024)
    const closed = once(duplex, 'close')
    duplex.end(bytes)
    assert.ok((await buffer(duplex)).equals(bytes))
    await closed
  })

  test('a far end that does not read makes the writer wait', async () => {
    const { duplex, far } = await connected()
    far.pause()
    duplex.on('error', () => {})
    const chunk = Buffer.alloc(1024 * 1024)
    let taken = 0
    const write = (): void => {
      duplex.write(chunk, (error) => {
        if (error) return
        taken++
        if (taken < 64) write()
      })
    }
    write()
    let before = -1
    while (before !== taken) {
      before = taken
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.ok(taken < 32, `${taken} MiB went nowhere`)
    duplex.destroy()
    far.destroy()
  })

  test('the far end sees a reset when it is destroyed early', async () => {
    const { duplex, far } = await connected()
    const failed = once(far, 'error')
    far.resume()
    duplex.write('x')
    await once(far, 'data')
    duplex.destroy()
    const [error] = (await failed) as [NodeJS.ErrnoException]
    assert.equal(error.code, 'ECONNRESET')
  })

  test('it fails when the far end resets', async () => {
    const { duplex, far } = await connected()
    duplex.resume()
    const failed = once(duplex, 'error')
    far.resetAndDestroy()
    const [error] = (await failed) as [Error]
    assert.ok(error instanceof Error)
    duplex.write('late', (late) => assert.ok(late instanceof Error))
  })
})
