import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { socketStream } from './socket-stream.ts'

async function connected(): Promise<{ near: Socket; far: Socket }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo // it listens on a port
  const near = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [far] = (await once(listener, 'connection')) as [Socket]
  listener.close()
  return { near, far }
}

describe('a socket that is reset', () => {
  for (const [name, prepare] of Object.entries({
    'as it is': () => {},
    'right after its end': (stream: ReturnType<typeof socketStream>) => {
      stream.write(Buffer.from('x'))
      stream.end()
    },
  })) {
    test(`${name} closes, and takes the far end along`, async () => {
      const { near, far } = await connected()
      const stream = socketStream(near)
      const closed = Promise.withResolvers<Error | undefined>()
      stream.attach({ data() {}, end() {}, drain() {}, closed: closed.resolve })
      const farClosed = new Promise((resolve) => far.on('close', resolve))
      far.on('error', () => {}).on('end', () => far.end())
      far.resume()
      prepare(stream)
      stream.reset()
      assert.ok((await closed.promise) instanceof Error)
      await farClosed
    })
  }
})
