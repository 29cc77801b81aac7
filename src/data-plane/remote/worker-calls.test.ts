import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { Peers } from '../../link/calls/peers.ts'
import { streamChannel } from '../../link/calls/plane-channel.ts'
import { WORKER_CALLS_TYPE } from '../../link/planes/dial-header.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import { RelayLinks } from './relay-links.ts'
import { Near, reached, request } from './testing/test-near.ts'
import { TestTunnel } from './testing/test-tunnel.ts'
import { WorkerListener } from './worker-listener.ts'

type Table = { echo(value: unknown, from: string): unknown; hang(nothing: null): Promise<void>; note(n: number): void }

const lines: string[] = []
const log = createLog({ level: 'warn', format: 'json', destination: { write: (line) => lines.push(line) } })
const folder = await mkdtemp(join(tmpdir(), 'calls-'))
const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
  await rm(folder, { recursive: true, force: true })
})

let planes = 0

/** A data plane that answers calls and has a tunnel for every dial. */
async function plane() {
  const self = `w${++planes}`
  const links = new RelayLinks({ log, pathOf: (id) => join(folder, `${id}.relay`) })
  const peers = new Peers<Table>({ self, log, channelTo: (id) => links.calls(id) })
  const noted: number[] = []
  peers.serve('echo', (value, from) => ({ value, from }))
  peers.serve('hang', () => new Promise(() => {}))
  peers.serve('note', (n) => void noted.push(n))
  const listener = new WorkerListener({
    log,
    dial: async () => new TestTunnel(),
    answer: (stream) => peers.accept(streamChannel(stream)),
  })
  await listener.listen(join(folder, `${self}.relay`))
  const close = async (): Promise<void> => {
    links.close()
    await listener.close()
  }
  closers.push(close)
  return { self, links, peers, noted, close }
}

test('planes call each other, and are told who asks', async () => {
  const [a, b] = [await plane(), await plane()]
  for (const [here, there] of [
    [a, b],
    [b, a],
  ] as const) {
    assert.deepEqual(await here.peers.ask(there.self, 'echo', [1]), { value: [1], from: here.self })
  }
  for (let i = 0; i < 500; i++) a.peers.tell(b.self, 'note', i)
  await a.peers.ask(b.self, 'echo', null)
  assert.deepEqual(
    b.noted,
    Array.from({ length: 500 }, (_, i) => i),
  )
})

test('calls that wait for a plane that goes are rejected, and so are later ones', async () => {
  const [a, b] = [await plane(), await plane()]
  const waiting = a.peers.ask(b.self, 'hang', null)
  await a.peers.ask(b.self, 'echo', null)
  await Promise.all([assert.rejects(waiting, { reason: 'closed' }), b.close()])
  await assert.rejects(a.peers.ask(b.self, 'echo', null), { reason: 'closed' })
  a.peers.tell(b.self, 'note', 1)
  a.links.close()
  await assert.rejects(a.peers.ask(b.self, 'echo', null), { reason: 'closed' })
})

/** A plane that counts its connections, and serves streams as told. */
async function counted(onStream: Parameters<typeof relaySession>[1]['onStream']) {
  const self = `w${++planes}`
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket.once('close', () => open.delete(socket)))
    relaySession(socket, { opens: false, onStream, onClosed() {} })
  })
  await new Promise<void>((resolve) => server.listen(join(folder, `${self}.relay`), resolve))
  closers.push(() => server.close())
  return { self, open }
}

test('visitors and calls share a connection, which a forgotten plane keeps until its last visitor leaves', async () => {
  const there = await counted((stream, type) => {
    if (type !== WORKER_CALLS_TYPE) stream.write(Buffer.alloc(2))
    stream.attach({ data() {}, end: () => stream.end(), drain() {}, closed() {} })
  })
  const { links, peers } = await plane()
  const waiting = assert.rejects(peers.ask(there.self, 'hang', null), { reason: 'closed' })
  const near = new Near(reached(await links.dial(there.self, request)))
  assert.equal(there.open.size, 1)
  links.forget(there.self)
  near.stream.end()
  await until('it is closed', () => there.open.size === 0)
  await waiting
})

test('a plane of a version that knows no such stream refuses it, and visitors are served', async () => {
  const there = await counted((stream, type) => {
    if (type === WORKER_CALLS_TYPE) return stream.reset('protocol_error')
    stream.write(Buffer.alloc(2))
    stream.attach({ data() {}, end: () => stream.end(), drain() {}, closed() {} })
  })
  const { links, peers } = await plane()
  for (let i = 0; i < 3; i++) await assert.rejects(peers.ask(there.self, 'echo', 1), { reason: 'closed' })
  reached(await links.dial(there.self, request)).reset()
  assert.equal(there.open.size, 1)
})

test('a plane that cannot be reached for a call is not logged: no visitor has lost it', async () => {
  lines.length = 0
  const { links, peers } = await plane()
  await assert.rejects(peers.ask('w999', 'echo', 1), { reason: 'closed' })
  assert.deepEqual(lines, [])
  links.close()
})
