import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import { RelayLinks } from './relay-links.ts'
import { Near, reached, request } from './testing/test-near.ts'

const log = createLog({ level: 'silent' })
const folder = await mkdtemp(join(tmpdir(), 'relay-'))
const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
  await rm(folder, { recursive: true, force: true })
})

let sockets = 0
const freshPath = (): string => join(folder, `${++sockets}.sock`)

describe('the links to other planes', () => {
  /** A door's server that counts connections. */
  async function counted(options: { readonly sessionStreams?: number } = {}) {
    const path = freshPath()
    const open = new Set<Socket>()
    let total = 0
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      total++
      open.add(socket.once('close', () => open.delete(socket)))
      relaySession(socket, {
        opens: false,
        onStream: (stream) => {
          stream.write(Buffer.alloc(2))
          stream.attach({ data() {}, end: () => stream.end(), drain() {}, closed() {} })
        },
        onClosed() {},
      })
    }).listen(path)
    await once(server, 'listening')
    const links = new RelayLinks({ log, pathOf: () => path, ...options })
    closers.push(
      () => links.close(),
      () => server.close(),
    )
    const dial = async (): Promise<Near> => {
      return new Near(reached(await links.dial('w2', request)))
    }
    return { links, dial, open, total: () => total }
  }

  test('share one connection', async () => {
    const { dial, total } = await counted()
    for (let i = 0; i < 5; i++) await dial()
    assert.equal(total(), 1)
  })

  test('close the connection to a plane that is forgotten: at once, or with its last stream', async () => {
    const { links, dial, open } = await counted()
    const first = await dial()
    first.stream.end()
    await until('it is over', () => first.closes.length > 0)
    links.forget('w2')
    await until('it is closed', () => open.size === 0)
    const second = await dial()
    links.forget('w2')
    links.forget('w2')
    assert.deepEqual([open.size, second.closes.length], [1, 0])
    second.stream.end()
    await until('it is over', () => second.closes.length > 0)
    assert.equal(second.closes[0], undefined)
    await until('it is closed', () => open.size === 0)
  })

  test('open another connection before the stream ids of one are used up', async () => {
    const { dial, total, open, links } = await counted({ sessionStreams: 3 })
    const all: Near[] = []
    for (let i = 0; i < 7; i++) all.push(await dial())
    assert.equal(total(), 3)
    assert.ok(all.every(({ closes }) => closes.length === 0))
    links.close()
    await until('all is closed', () => open.size === 0 && all.every(({ closes }) => closes.length === 1))
  })

  test('reconnect after the connection was lost', async () => {
    const { dial, open, total } = await counted()
    const first = await dial()
    for (const socket of open) socket.destroy()
    await until('it is lost', () => first.closes.length > 0)
    await dial()
    assert.equal(total(), 2)
  })
})
