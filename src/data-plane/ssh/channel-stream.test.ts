import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Channel } from 'ssh2'
import type { ByteSink } from '../../lib/bytes/byte-stream.ts'
import { DialFault } from '../../model/dial.ts'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { dial, gatewayStarter, serving, type TestClient, theSession } from './testing/test-gateway.ts'

const start = gatewayStarter()

/** The client's ends of visitor connections. */
function answering(client: TestClient, serve: (channel: Channel) => void): void {
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => serve(accept()))
}

class Collected implements ByteSink {
  readonly chunks: Buffer[] = []
  readonly ended = Promise.withResolvers<void>()
  readonly isClosed = Promise.withResolvers<Error | undefined>()
  drains = 0

  data(chunk: Buffer): void {
    this.chunks.push(chunk)
  }

  end(): void {
    this.ended.resolve()
  }

  drain(): void {
    this.drains++
  }

  closed(error: Error | undefined): void {
    this.isClosed.resolve(error)
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks)
  }
}

test('the service sees the visitor’s address, and each direction ends on its own', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  let details: unknown
  client.ssh.on('tcp connection', (given: unknown) => {
    details = given
  })
  answering(client, (channel) => {
    let heard = ''
    channel.on('data', (chunk: Buffer) => {
      heard += chunk.toString()
    })
    channel.on('end', () => channel.end(`heard ${heard}`))
  })
  const stream = await dial(gateway)
  const sink = new Collected()
  stream.attach(sink)
  stream.write(Buffer.from('hello'))
  stream.end()
  await sink.ended.promise
  assert.equal(sink.bytes.toString(), 'heard hello')
  assert.equal(await sink.isClosed.promise, undefined)
  assert.deepEqual(details, { destIP: 'app.example.test', destPort: 443, srcIP: '192.0.2.1', srcPort: 4711 })
  await until(() => theSession(gateway).connections === 0)
})

test('bytes that came before the close are delivered, however slow the reader', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  answering(client, (channel) => channel.end(Buffer.alloc(200_000, 1)))
  const stream = await dial(gateway)
  const sink = new Collected()
  stream.attach(sink)
  stream.pause()
  stream.end()
  await until(() => theSession(gateway).connections === 0)
  stream.resume()
  await sink.ended.promise
  assert.equal(sink.bytes.length, 200_000)
  assert.equal(await sink.isClosed.promise, undefined)
})

test('a reader that stalls holds up the client, and nobody else', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  answering(client, (channel) => {
    channel.once('data', (kind: Buffer) => {
      if (kind.toString() === 'flood') channel.write(Buffer.alloc(20_000_000))
      else channel.end('small')
    })
  })
  const flooded = await dial(gateway)
  const stalled = new Collected()
  flooded.attach(stalled)
  flooded.pause()
  flooded.write(Buffer.from('flood'))
  await until(() => theSession(gateway).bytesIn >= 256 * 1024)
  const other = await dial(gateway)
  const sink = new Collected()
  other.attach(sink)
  other.write(Buffer.from('small'))
  await sink.ended.promise
  assert.equal(sink.bytes.toString(), 'small')
  assert.ok(theSession(gateway).bytesIn < 600_000, 'no more than the first window was taken')
  flooded.resume()
  await until(() => stalled.chunks.reduce((sum, { length }) => sum + length, 0) === 20_000_000)
})

test('a service that does not read makes the writer wait, and nobody else', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  const channels: Channel[] = []
  answering(client, (channel) => channels.push(channel))
  const stream = await dial(gateway)
  const sink = new Collected()
  stream.attach(sink)
  const chunk = Buffer.alloc(64 * 1024)
  let written = 0
  // The client of the tests grants two megabytes, and reads as many ahead.
  while (written < 40_000_000) {
    const drains = sink.drains
    written += chunk.length
    if (stream.write(chunk)) continue
    const hasRoom = await Promise.race([
      until(() => sink.drains > drains).then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 500)),
    ])
    if (!hasRoom) break
  }
  assert.ok(written < 10_000_000, 'it was asked to wait')
  const other = await dial(gateway)
  const heard = new Collected()
  other.attach(heard)
  await until(() => channels.length === 2)
  channels[1]?.end('fine')
  await heard.ended.promise
  channels[0]?.resume()
  await until(() => sink.drains > 0)
})

test('a client that sends more than it was granted is cut off', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  answering(client, (channel) => {
    channel.outgoing.window = 100_000_000
    // The library ignores data that arrives when the window is exactly zero.
    channel.write(Buffer.alloc(1000))
    channel.write(Buffer.alloc(10_000_000))
  })
  const stream = await dial(gateway)
  const sink = new Collected()
  stream.attach(sink)
  stream.pause()
  assert.ok((await sink.isClosed.promise) instanceof Error)
  await client.closed
})

test('dialling reports a service that refuses, and a client that does not answer in time', async () => {
  const gateway = await start({ limits: { dialMs: 100 } })
  const { client } = await serving(gateway)
  let isSilent = false
  client.ssh.on('tcp connection', (_details: unknown, _accept: unknown, reject: () => void) => {
    if (!isSilent) reject()
  })
  await assert.rejects(dial(gateway), (error) => error instanceof DialFault && error.reason === 'refused')
  isSilent = true
  await assert.rejects(dial(gateway), (error) => error instanceof DialFault && error.reason === 'timeout')
})

test('a connection cannot exceed its limit of channels', async () => {
  const gateway = await start({ limits: { channels: 2 } })
  const { client } = await serving(gateway)
  answering(client, () => {})
  await Promise.all([dial(gateway), dial(gateway)])
  await assert.rejects(dial(gateway), (error) => error instanceof DialFault && error.reason === 'busy')
})
