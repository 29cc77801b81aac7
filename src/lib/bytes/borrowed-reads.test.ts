import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { socketPair } from '../../../test/support/socket-pair.ts'
import { LENT_BYTES, readBorrowed } from './borrowed-reads.ts'

/** Long enough for sockets to be read. */
const turn = (): Promise<void> => wait(1)

const kinds = [
  { name: 'a connection that was accepted', tls: false, isAccepted: true },
  { name: 'a connection that was opened', tls: false, isAccepted: false },
  { name: 'a TLS connection that was accepted', tls: true, isAccepted: true },
  { name: 'a TLS connection that was opened', tls: true, isAccepted: false },
]

// The code relies on private parts of Node: these tests fail on a version of Node without them.
describe('reads are lent from', () => {
  for (const { name, tls, isAccepted } of kinds) {
    test(name, async () => {
      const { connected, accepted } = await socketPair({ tls })
      const [near, far] = isAccepted ? [accepted, connected] : [connected, accepted]
      const hash = createHash('sha256')
      const memory = new Set<ArrayBufferLike>()
      let largest = 0
      const isLent = readBorrowed(near, (chunk) => {
        hash.update(chunk)
        memory.add(chunk.buffer)
        largest = Math.max(largest, chunk.length)
        return true
      })
      assert.ok(isLent)
      near.on('data', () => assert.fail('bytes came as an event'))
      const sent = randomBytes(8 * 1024 * 1024)
      far.end(sent)
      await once(near, 'end')
      assert.equal(hash.digest('hex'), createHash('sha256').update(sent).digest('hex'))
      assert.equal(memory.size, 1)
      assert.ok(largest > 0 && largest <= LENT_BYTES)
      near.end()
      far.resume()
      await Promise.all([once(near, 'close'), once(far, 'close')])
    })
  }

  test('a reader that pauses gets nothing until the socket is resumed', async () => {
    const { connected: near, accepted: far } = await socketPair({ tls: false })
    let calls = 0
    readBorrowed(near, () => ++calls > 1)
    near.resume()
    far.write('a')
    while (calls < 1) await turn()
    far.write('b')
    for (let i = 0; i < 20; i++) await turn()
    assert.equal(calls, 1)
    near.resume()
    while (calls < 2) await turn()
    near.destroy()
    far.destroy()
  })
})

describe('nothing changes for', () => {
  test('a stream that is not a socket', () => {
    const [near] = duplexPair()
    assert.equal(
      readBorrowed(near, () => assert.fail('there is nothing to read')),
      false,
    )
  })

  test('TLS over a JavaScript stream, which can be read within a read', () => {
    const [near] = duplexPair()
    const socket: Socket = connectTls({ socket: near })
    socket.on('error', () => {})
    assert.equal(
      readBorrowed(socket, () => assert.fail('there is nothing to read')),
      false,
    )
    socket.destroy()
  })

  test('a closed socket', async () => {
    const { connected, accepted } = await socketPair({ tls: false })
    accepted.destroy()
    connected.destroy()
    await once(connected, 'close')
    assert.equal(
      readBorrowed(connected, () => assert.fail('there is nothing to read')),
      false,
    )
  })
})
