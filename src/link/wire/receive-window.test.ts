import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Growth, ReceiveWindow } from './receive-window.ts'
import { SESSION_GROWTH_BYTES, WINDOW_BYTES } from './wire-bounds.ts'

const KIB = 1024

function growth(changes: Partial<Growth> = {}): Growth & { timeMs: number } {
  const shared: Growth & { timeMs: number } = {
    timeMs: 0,
    streamBytes: WINDOW_BYTES,
    spareBytes: SESSION_GROWTH_BYTES,
    roundTripMs: undefined,
    now: () => shared.timeMs,
    ...changes,
  }
  return shared
}

/** In one round trip of 100 ms, the peer sends all it may, and all is read. */
function roundTrip(window: ReceiveWindow, shared: { timeMs: number }): void {
  let left = window.open
  shared.timeMs += 100
  while (left > 0) {
    const bytes = Math.min(left, 64 * KIB)
    left -= bytes
    assert.ok(window.receive(bytes))
    if (window.consume(bytes)) window.credit()
  }
}

test('a peer may send 256 KiB and not a byte more', () => {
  const window = new ReceiveWindow(growth())
  assert.ok(window.receive(WINDOW_BYTES - 1))
  assert.ok(!window.receive(2))
  assert.ok(window.receive(1))
  assert.ok(!window.receive(1))
})

test('credit is given in halves of the window, and never more than was read', () => {
  const window = new ReceiveWindow(growth())
  assert.ok(window.receive(200 * KIB))
  assert.ok(!window.consume(128 * KIB - 1))
  assert.ok(window.consume(1))
  assert.equal(window.credit(), 128 * KIB)
  assert.equal(window.open, WINDOW_BYTES - 72 * KIB)
})

test('a window does not grow unless both ends agreed to it', () => {
  const shared = growth({ roundTripMs: 100 })
  const window = new ReceiveWindow(shared)
  for (let i = 0; i < 10; i++) roundTrip(window, shared)
  assert.equal(window.size, WINDOW_BYTES)
})

test('a window that limits its stream grows to the agreed size and no further', () => {
  const shared = growth({ roundTripMs: 100, streamBytes: 4 * WINDOW_BYTES })
  const window = new ReceiveWindow(shared)
  for (let i = 0; i < 20; i++) roundTrip(window, shared)
  assert.equal(window.size, 4 * WINDOW_BYTES)
  assert.equal(shared.spareBytes, SESSION_GROWTH_BYTES - 3 * WINDOW_BYTES)
  window.close()
  assert.equal(shared.spareBytes, SESSION_GROWTH_BYTES)
})

test('the windows of a session share one budget for growth', () => {
  const shared = growth({ roundTripMs: 100, streamBytes: 64 * WINDOW_BYTES, spareBytes: 3 * WINDOW_BYTES })
  const windows = [new ReceiveWindow(shared), new ReceiveWindow(shared)]
  for (let i = 0; i < 20; i++) for (const window of windows) roundTrip(window, shared)
  assert.equal(
    windows.reduce((sum, { size }) => sum + size, 0),
    5 * WINDOW_BYTES,
  )
  assert.equal(shared.spareBytes, 0)
})

test('a stream that becomes slow gives back what it had grown by', () => {
  const shared = growth({ roundTripMs: 100, streamBytes: 8 * WINDOW_BYTES })
  const window = new ReceiveWindow(shared)
  for (let i = 0; i < 20; i++) roundTrip(window, shared)
  assert.equal(window.size, 8 * WINDOW_BYTES)
  for (let i = 0; i < 400; i++) {
    shared.timeMs += 10_000
    assert.ok(window.receive(64 * KIB))
    if (window.consume(64 * KIB)) window.credit()
  }
  assert.equal(window.size, WINDOW_BYTES)
  assert.equal(window.open + window.owed, WINDOW_BYTES)
  assert.equal(shared.spareBytes, SESSION_GROWTH_BYTES)
})
