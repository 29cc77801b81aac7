import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { streamTypes, typeHead } from '../wire/stream-types.ts'
import { Ends, Heard, type Side } from '../wire/testing/test-link.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { CallLink } from './call-link.ts'
import { type Channel, streamChannel } from './plane-channel.ts'

const log = createLog({ level: 'silent' })

type Far = { echo(value: unknown): unknown; hang(nothing: null): Promise<void> }

const far: Far = { echo: (value) => value, hang: () => new Promise(() => {}) }

/** A stream that the server opened, at both ends. */
function open(ends: Ends): Record<Side, WireStream> {
  const stream = ends.server.open(typeHead(streamTypes.proxy))
  if (stream instanceof WireError) assert.fail(stream)
  ends.settle()
  return { server: stream, agent: ends.accepted.agent.at(-1)?.stream ?? assert.fail() }
}

/** Channels over one stream of a session that has room for others. */
function start(bounds: Parameters<typeof streamChannel>[1] = {}) {
  const ends = new Ends()
  const streams = open(ends)
  const [asking, answering] = [streamChannel(streams.server, bounds), streamChannel(streams.agent, bounds)]
  return { ends, streams, asking, answering }
}

/** What arrives at one end. */
function heard(channel: Channel) {
  const found = { messages: [] as unknown[], closings: 0 }
  channel.open({ message: (message) => found.messages.push(message), closed: () => found.closings++ })
  return found
}

/** Moves what a socket delivers in one read, in both directions. */
async function step(ends: Ends): Promise<void> {
  for (const side of ['server', 'agent'] as const) ends.turn(side)
  for (const pipe of [ends.link.pipes.server, ends.link.pipes.agent]) pipe.deliver(64 * 1024)
  await new Promise(setImmediate)
}

describe('a channel over a stream', () => {
  test('delivers messages in order in both directions, however they are split, and then its end', () => {
    const { ends, asking, answering } = start()
    const [here, there] = [heard(asking), heard(answering)]
    const all = Array.from({ length: 300 }, (_, i) => ({ i, text: 'ä\u0000🦊'.repeat(i) }))
    for (const each of all) {
      asking.send(each)
      answering.send([each.i, null])
    }
    ends.settle(777)
    asking.send('last')
    asking.close()
    asking.send('too late')
    ends.settle()
    assert.deepEqual(there, { messages: [...all, 'last'], closings: 1 })
    assert.deepEqual(here, { messages: all.map(({ i }) => [i, null]), closings: 1 })
    assert.deepEqual([ends.server.size, ends.agent.size], [0, 0])
  })

  const garbage: Record<string, Buffer> = {
    'a message that is too long': Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
    'an empty message': Buffer.alloc(4),
    'bytes that are no JSON': Buffer.from([0, 0, 0, 3, 1, 2, 3]),
  }
  for (const [what, bytes] of Object.entries(garbage)) {
    test(`is closed by ${what}, and no other stream is`, () => {
      const { ends, streams, answering } = start()
      const other = open(ends)
      const there = heard(answering)
      streams.server.write(bytes)
      ends.settle()
      assert.deepEqual(there, { messages: [], closings: 1 })
      assert.deepEqual([streams.server.isClosed, other.server.isClosed, other.agent.isClosed], [true, false, false])
    })
  }

  test('does not send a message that the other side would refuse as too long', () => {
    const { asking } = start({ maxMessage: 1000 })
    assert.throws(() => asking.send('x'.repeat(1000)), RangeError)
  })

  test('disconnects a peer that reads nothing', () => {
    const { asking } = start({ maxWaiting: 1_000_000 })
    const here = heard(asking)
    for (let i = 0; i < 20; i++) asking.send('x'.repeat(100_000))
    assert.equal(here.closings, 1)
  })

  test('sends the messages of a callback together, before the turn ends', async () => {
    const { ends, asking } = start()
    heard(asking)
    const { log: writes } = ends.link.pipes.server
    const before = writes.length
    for (let i = 0; i < 10; i++) asking.send(i)
    assert.equal(writes.length, before)
    await Promise.resolve().then(() => new Promise(process.nextTick))
    assert.equal(writes.length, before + 1)
    ends.turn('server')
    assert.equal(writes.length, before + 1)
  })
})

describe('calls over a stream', () => {
  test('are rejected when the session ends', async () => {
    const { ends, asking, answering } = start()
    const link = new CallLink<Far, Far>(asking, far, { log })
    new CallLink<Far, Far>(answering, far, { log })
    const waiting = link.ask('hang', null)
    ends.settle()
    ends.agent.close()
    ends.settle()
    await assert.rejects(waiting, (error) => error instanceof LinkFault && error.reason === 'closed')
  })

  /** How many reads of a socket it takes until a call is answered. */
  async function readsOfCall(isBusy: Record<Side, boolean>): Promise<number> {
    const { ends, asking, answering } = start()
    const link = new CallLink<Far, Far>(asking, far, { log })
    new CallLink<Far, Far>(answering, far, { log })
    const bulk = open(ends)
    let carried = 0
    const fill = (stream: WireStream): void => {
      while (stream.writeLent(Buffer.alloc(64 * 1024)));
    }
    for (const side of ['server', 'agent'] as const) {
      const stream = bulk[side]
      const lent = (chunk: Buffer): void => {
        carried += chunk.length
      }
      stream.attach(Object.assign(new Heard(), { lent, drain: () => fill(stream) }))
      if (isBusy[side]) fill(stream)
    }
    for (let i = 0; i < 50; i++) await step(ends)
    const before = carried
    let isAnswered = false
    const asked = link.ask('echo', 'x'.repeat(1000)).then(() => {
      isAnswered = true
    })
    let reads = 0
    for (; !isAnswered; reads++) await step(ends)
    await asked
    if (isBusy.server || isBusy.agent) assert.ok(carried > before, 'the other stream goes on')
    return reads
  }

  test('are answered promptly while another stream of the session is at full speed', async () => {
    const alone = await readsOfCall({ server: false, agent: false })
    assert.ok(alone <= 2, `${alone} without other traffic`)
    for (const server of [true, false]) {
      const reads = await readsOfCall({ server, agent: !server })
      // What was handed to the socket before is read first: at most a batch and the frame that filled it.
      assert.ok(reads <= alone + 4, `${reads} instead of ${alone}`)
    }
    const reads = await readsOfCall({ server: true, agent: true })
    assert.ok(reads <= alone + 8, `${reads} instead of ${alone}`)
  })
})
