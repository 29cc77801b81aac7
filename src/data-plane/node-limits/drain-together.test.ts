import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DrainTogether } from './drain-together.ts'
import type { WorkerPeers } from './worker-peers.ts'

/** The neighbours of a plane, driven by the test. */
function peers(others: string[]) {
  const handlers = new Map<string, (nothing: null, from: string) => unknown>()
  const sent: string[] = []
  const port: WorkerPeers = {
    self: 'w1',
    others: () => others,
    whenMoved() {},
    ask: () => assert.fail(),
    tell: () => assert.fail(),
    tellAll: (name) => void sent.push(...others.map((plane) => `${plane} ${name}`)),
    serve: (name, handler) => void handlers.set(name, handler as (nothing: null) => unknown), // only its own are served
  }
  return { port, sent, say: (name: string, from: string) => handlers.get(name)?.(null, from) }
}

const soon = () => performance.now() + 60_000

test('a plane without neighbours does not wait', async () => {
  await new DrainTogether(peers([]).port).othersDone(soon(), () => 0)
})

test('a plane without neighbours stays while it carries visitors of other nodes', async () => {
  let left = 3
  await new DrainTogether(peers([]).port).othersDone(soon(), () => left--)
  assert.ok(left < 0)
})

test('neighbours are told when a drain begins and when it is over', () => {
  const { port, sent } = peers(['w2', 'w3'])
  const together = new DrainTogether(port)
  together.begun()
  together.done()
  assert.deepEqual(sent, ['w2 drain.begun', 'w3 drain.begun', 'w2 drain.done', 'w3 drain.done'])
})

test('a plane stays until draining neighbours are done and it carries nothing for them', async () => {
  const others = ['w2', 'w3']
  const { port, say } = peers(others)
  const together = new DrainTogether(port)
  say('drain.begun', 'w2')
  say('drain.begun', 'w3')
  let carried = 1
  let isOver = false
  const over = together
    .othersDone(soon(), () => carried)
    .then(() => {
      isOver = true
    })
  say('drain.done', 'w2')
  await new Promise(setImmediate)
  assert.equal(isOver, false)
  // A plane that is gone needs no other.
  others.pop()
  await new Promise(setImmediate)
  assert.equal(isOver, false)
  carried = 0
  await over
})

test('no wait goes beyond the drain time', async () => {
  const { port, say } = peers(['w2'])
  const together = new DrainTogether(port)
  say('drain.begun', 'w2')
  await together.othersDone(performance.now() + 50, () => 1)
})
