import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Draining, drainVisitors } from './drain-visitors.ts'

/** Notes its calls; `counts` say how many visitors are still there. */
function stage(counts: { open?: number; carried?: number; peeking?: number; handshakes?: number } = {}) {
  const notes: string[] = []
  const note = (what: string) => () => void notes.push(what)
  const left = { open: 0, carried: 0, peeking: 0, handshakes: 0, ...counts }
  const draining: Draining = {
    plain: { close: note('plain closed') },
    ports: { closeAll: note('ports closed') },
    secure: {
      close: note('secure closed'),
      sendAway: note('sent away'),
      get pending() {
        return left.peeking
      },
    },
    tls: {
      get pending() {
        return left.handshakes
      },
    },
    front: {
      get open() {
        return left.open
      },
      connections: [],
      drain: note('drained'),
      cut: note('http cut'),
    },
    router: {
      get carried() {
        return left.carried
      },
      sockets: [],
      cut: note('streams cut'),
    },
  }
  return { notes, left, draining }
}

const closed = ['plain closed', 'ports closed', 'secure closed']
const cut = ['sent away', 'http cut', 'streams cut']

test('a server without visitors stops at once, listeners first', async () => {
  const { notes, draining } = stage()
  await drainVisitors(draining, 60_000)
  assert.deepEqual(notes, [...closed, 'drained', ...cut])
})

test('idle connections stay open for a moment before they are drained', async () => {
  const { notes, draining, left } = stage({ open: 1 })
  const done = drainVisitors(draining, 60_000)
  // Before any timer can have run, however busy the machine is.
  assert.deepEqual(notes, closed)
  left.open = 0
  await done
  assert.deepEqual(notes, [...closed, 'drained', ...cut])
})

for (const kind of ['open', 'carried', 'peeking', 'handshakes'] as const) {
  test(`nothing is cut while something is ${kind}`, async () => {
    const { notes, draining, left } = stage({ [kind]: 1 })
    const done = drainVisitors(draining, 60_000)
    // Once drained, it has checked at least once and found a visitor.
    while (!notes.includes('drained')) await new Promise(setImmediate)
    assert.deepEqual(notes, [...closed, 'drained'])
    left[kind] = 0
    await done
    assert.deepEqual(notes, [...closed, 'drained', ...cut])
  })
}

test('visitors that are still there after the drain time are cut off', async () => {
  const { notes, draining } = stage({ open: 1, carried: 1 })
  await drainVisitors(draining, 0)
  assert.deepEqual(notes, [...closed, 'drained', ...cut])
})
