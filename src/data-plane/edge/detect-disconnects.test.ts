import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { readTcpTable } from '../../lib/net/tcp-table.ts'
import { DisconnectWatch } from './detect-disconnects.ts'

/** A visitor and the server's end of its connection, which holds unread bytes. */
async function stalled(t: TestContext, host: string): Promise<{ visitor: Socket; socket: Socket }> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, host)
  await once(server, 'listening')
  const visitor = connect({ port: (server.address() as AddressInfo).port, host, allowHalfOpen: true })
  const [socket] = (await once(server, 'connection')) as [Socket]
  for (const each of [visitor, socket]) each.on('error', () => {})
  t.after(() => {
    visitor.destroy()
    socket.destroy()
    server.close()
  })
  socket.pause()
  await new Promise((resolve) => visitor.write('unread', resolve))
  return { visitor, socket }
}

/** Counts how often the table is read. */
function watcher(): { departed: DisconnectWatch; looks: (count: number) => Promise<void> } {
  let seen = 0
  let wake: (() => void) | undefined
  const departed = new DisconnectWatch({
    everyMs: 5,
    readTable: async (family) => {
      const table = await readTcpTable(family)
      seen++
      wake?.()
      return table
    },
  })
  const looks = async (count: number): Promise<void> => {
    for (const from = seen; seen < from + count; ) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { departed, looks }
}

describe('a visitor that is not read from', {
  skip: process.platform !== 'linux' && 'no table of connections here',
}, () => {
  for (const host of ['127.0.0.1', '::1']) {
    test(`is found to have reset its connection: ${host}`, async (t) => {
      const { visitor, socket } = await stalled(t, host)
      const { departed, looks } = watcher()
      const unwatch = departed.watch(socket, { mayHalfClose: () => true })
      await looks(5)
      assert.equal(socket.destroyed, false)
      visitor.resetAndDestroy()
      await once(socket, 'close')
      unwatch()
    })

    test(`is found to have ended its side, where that means that it left: ${host}`, async (t) => {
      const { visitor, socket } = await stalled(t, host)
      const { departed, looks } = watcher()
      let mayHalfClose = true
      const unwatch = departed.watch(socket, { mayHalfClose: () => mayHalfClose })
      visitor.end()
      await looks(10)
      assert.equal(socket.destroyed, false)
      mayHalfClose = false
      await once(socket, 'close')
      unwatch()
    })
  }

  test('is read ahead once, when it was not read from for several checks', async (t) => {
    const { socket } = await stalled(t, '127.0.0.1')
    const { departed, looks } = watcher()
    let calls = 0
    const unwatch = departed.watch(socket, { mayHalfClose: () => false, onStalled: () => calls++ })
    await looks(5)
    assert.equal(calls, 1)
    unwatch()
  })

  test('is left alone where the system has no table', async (t) => {
    const { visitor, socket } = await stalled(t, '127.0.0.1')
    // Node remembers them once they are read.
    assert.ok(socket.remoteAddress && socket.localAddress)
    let looks = 0
    const departed = new DisconnectWatch({
      everyMs: 5,
      readTable: async () => {
        looks++
        return undefined
      },
    })
    const unwatch = departed.watch(socket, { mayHalfClose: () => false })
    visitor.resetAndDestroy()
    while (looks < 5) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(socket.destroyed, false)
    unwatch()
  })
})
