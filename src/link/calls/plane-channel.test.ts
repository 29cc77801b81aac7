import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { serialize } from 'node:v8'
import fc from 'fast-check'
import { type Channel, channelPair, socketChannel } from './plane-channel.ts'
import { socketPair } from './testing/test-sockets.ts'

/** What a channel delivers, with a promise for its end. */
class Reader {
  readonly messages: unknown[] = []
  closings = 0
  /** Messages that came after the end. */
  late = 0
  readonly closed: Promise<void>
  readonly #wanted: { readonly count: number; readonly resolve: () => void }[] = []

  constructor(channel: Channel) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    channel.open({
      message: (message) => {
        if (this.closings > 0) this.late++
        this.messages.push(message)
        for (const each of this.#wanted) if (this.messages.length >= each.count) each.resolve()
      },
      closed: () => {
        this.closings++
        resolve()
      },
    })
  }

  async has(count: number): Promise<readonly unknown[]> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wanted.push({ count, resolve })
    if (this.messages.length < count) await promise
    return this.messages
  }
}

const kinds: Record<string, () => Promise<readonly [Channel, Channel]>> = {
  'inside one process': async () => channelPair(),
  'over a socket': async () => {
    const [a, b] = await socketPair()
    return [socketChannel(a), socketChannel(b)]
  },
}

for (const [kind, pair] of Object.entries(kinds)) {
  describe(`a channel ${kind}`, () => {
    test('delivers plain values of every kind, as they were', async () => {
      const [a, b] = await pair()
      const values = [
        null,
        undefined,
        0,
        -0,
        Number.NaN,
        12n,
        '',
        'ä\u0000🦊',
        [],
        {},
        { a: [1, { b: undefined }] },
        new Map([['a', new Set([1])]]),
        new Date(0),
        Buffer.from('bytes'),
        new Uint8Array([1, 2, 3]),
      ]
      for (const value of values) a.send(value)
      const reader = new Reader(b)
      assert.deepEqual(await reader.has(values.length), values)
      a.close()
      await reader.closed
    })

    test('keeps the order in both directions, and never shares an object', async () => {
      const [a, b] = await pair()
      const [atA, atB] = [new Reader(a), new Reader(b)]
      const all = Array.from({ length: 2000 }, (_, i) => ({ i, filling: 'x'.repeat(i) }))
      for (const each of all) {
        a.send(each)
        b.send([each.i])
      }
      assert.deepEqual(await atB.has(all.length), all)
      assert.notEqual(atB.messages[0], all[0])
      assert.deepEqual(
        await atA.has(all.length),
        all.map(({ i }) => [i]),
      )
      a.close()
      await Promise.all([atA.closed, atB.closed])
    })

    test('delivers what was sent before it is opened', async () => {
      const [a, b] = await pair()
      a.send('early')
      a.send('birds')
      a.close()
      new Reader(a)
      await new Promise(setImmediate)
      const reader = new Reader(b)
      await reader.closed
      assert.deepEqual(reader.messages, ['early', 'birds'])
    })

    test('sends what was written before it closes, and then reports the close once at both ends', async () => {
      const [a, b] = await pair()
      const [atA, atB] = [new Reader(a), new Reader(b)]
      const large = 'y'.repeat(3_000_000)
      a.send(large)
      a.send('last')
      a.close()
      a.close()
      a.send('too late')
      b.send('perhaps')
      await Promise.all([atA.closed, atB.closed])
      b.send('too late')
      b.close()
      await new Promise(setImmediate)
      assert.deepEqual(atB.messages, [large, 'last'])
      for (const { closings, late } of [atA, atB]) assert.deepEqual({ closings, late }, { closings: 1, late: 0 })
    })

    test('throws for a value that is not plain, and stays usable', async () => {
      const [a, b] = await pair()
      const [atA, atB] = [new Reader(a), new Reader(b)]
      assert.throws(() => a.send(() => {}))
      assert.throws(() => a.send({ deep: [Symbol('no')] }))
      a.send('still here')
      assert.deepEqual(await atB.has(1), ['still here'])
      b.close()
      await Promise.all([atA.closed, atB.closed])
    })

    test('that was closed before it is opened reports that', async () => {
      const [a, b] = await pair()
      new Reader(b)
      b.close()
      a.close()
      await new Promise(setImmediate)
      const reader = new Reader(a)
      await reader.closed
      assert.deepEqual([reader.messages, reader.closings], [[], 1])
    })
  })
}

/** The bytes of a message. */
function framed(message: unknown): Buffer {
  const body = serialize(message)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  return Buffer.concat([head, body])
}

/** A channel, and the socket of the other end. */
async function bare(options?: Parameters<typeof socketChannel>[1]) {
  const [a, peer] = await socketPair()
  peer.on('error', () => {})
  const channel = socketChannel(a, options)
  return { channel, reader: new Reader(channel), peer, socket: a }
}

async function written(peer: Socket, bytes: Uint8Array): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  peer.write(bytes, () => resolve())
  await promise
}

describe('a channel over a socket', () => {
  test('finds messages however their bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 12 }),
        async (messages, cuts) => {
          const { reader, peer } = await bare()
          peer.setNoDelay()
          let bytes = Buffer.concat(messages.map(framed))
          for (let i = 0; bytes.length > 0; i++) {
            const length = (cuts[i % cuts.length] ?? 0) + 1
            await written(peer, bytes.subarray(0, length))
            if (i % 3 === 0) await new Promise(setImmediate)
            bytes = bytes.subarray(length)
          }
          peer.end()
          await reader.closed
          // As it is read back, since `-0` and others have no JSON.
          assert.deepEqual(reader.messages, messages)
        },
      ),
      { numRuns: 25 },
    )
  })

  const garbage: Record<string, Uint8Array> = {
    'no message at all': Buffer.from('GET / HTTP/1.1\r\nHost: example.com\r\n\r\n'),
    'an empty message': Buffer.alloc(4),
    'a message that is too long': Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
    'bytes that are no value': Buffer.from([0, 0, 0, 3, 1, 2, 3]),
    'a value that is cut short': Buffer.concat([Buffer.from([0, 0, 0, 9]), serialize('a longer text').subarray(0, 9)]),
  }
  for (const [what, bytes] of Object.entries(garbage)) {
    test(`is closed by ${what}, after the messages before`, async () => {
      const { reader, peer } = await bare()
      const gone = once(peer, 'close')
      peer.resume()
      peer.write(Buffer.concat([framed('good'), bytes, framed('never seen')]))
      await reader.closed
      peer.end()
      await gone
      assert.deepEqual([reader.messages, reader.closings], [['good'], 1])
    })
  }

  test('that ends within a message is closed without it', async () => {
    for (const kept of [2, 6]) {
      const { reader, peer } = await bare()
      peer.end(Buffer.concat([framed(1), framed('cut').subarray(0, kept)]))
      await reader.closed
      assert.deepEqual(reader.messages, [1])
    }
  })

  test('that breaks is closed', async () => {
    const { reader, peer } = await bare()
    peer.write(framed('first'))
    await reader.has(1)
    peer.resetAndDestroy()
    await reader.closed
    assert.equal(reader.closings, 1)
  })

  test('does not send a message that the other side would refuse as too long', async () => {
    const { channel, reader, peer } = await bare({ maxMessage: 1000 })
    assert.throws(() => channel.send('x'.repeat(2000)), RangeError)
    peer.write(framed('y'.repeat(900)))
    assert.equal((await reader.has(1)).length, 1)
    peer.write(framed('y'.repeat(2000)))
    await reader.closed
    assert.equal(reader.messages.length, 1)
    peer.destroy()
  })

  test('disconnects a peer that reads nothing', async () => {
    const { channel, reader, peer, socket } = await bare({ maxWaiting: 4_000_000 })
    peer.pause()
    const message = Buffer.alloc(1_000_000)
    // The kernel buffers some of it, but not without bound.
    for (let i = 0; i < 200 && !socket.destroyed; i++) {
      channel.send(message)
      await new Promise(setImmediate)
    }
    assert.ok(socket.destroyed)
    await reader.closed
    channel.send('nothing happens')
    peer.destroy()
  })

  test('closes even when the other side never does', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { channel, reader, peer } = await bare()
    const ended = once(peer, 'end')
    peer.resume()
    channel.close()
    await ended
    assert.equal(reader.closings, 0)
    t.mock.timers.tick(60_000)
    await reader.closed
    peer.destroy()
  })

  test('delivers a large message whole', async () => {
    const [a, b] = await socketPair()
    const [from, to] = [socketChannel(a), socketChannel(b)]
    const reader = new Reader(to)
    new Reader(from)
    const large = { text: 'z'.repeat(20_000_000), bytes: Buffer.alloc(10_000_000, 3) }
    from.send(large)
    from.send('next')
    const [first, second] = await reader.has(2)
    assert.ok((first as typeof large).text === large.text)
    assert.ok((first as typeof large).bytes.equals(large.bytes))
    assert.equal(second, 'next')
    to.close()
    await reader.closed
  })
})
