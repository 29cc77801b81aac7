import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { createLog } from '../log/create-log.ts'
import { ConnectionCaps } from './connection-caps.ts'

const unlimited = {
  maxConnections: 0,
  maxConnectionsPerSource: 0,
  maxRequestsPerSource: 0,
  maxHandshakes: 0,
  maxHandshakesPerSource: 0,
}

// Only the close and the remote address of a socket are used.
const socket = () =>
  Object.assign(new EventEmitter(), { remoteAddress: '192.0.2.1', destroyed: false }) as unknown as Socket

function start() {
  const caps = new ConnectionCaps({
    limits: unlimited,
    door: 'visitors',
    log: createLog({ level: 'silent' }),
    now: () => 0,
  })
  return { caps, enter: (each = socket()) => caps.accept(each) && caps.admit(each, '192.0.2.1') && each }
}

test('changed limits apply to new connections, and open ones stay open', () => {
  const { caps, enter } = start()
  const first = enter()
  enter()
  caps.use({ ...unlimited, maxConnections: 1 })
  assert.equal(enter(), false)
  assert.equal(caps.open, 2)
  caps.use(unlimited)
  assert.ok(enter())
  assert.ok(first)
  first.emit('close')
  assert.equal(caps.open, 2)
  caps.close()
})

test('a new limit per source counts from then on', () => {
  const { caps, enter } = start()
  enter()
  assert.equal(caps.requestsOf('192.0.2.1'), undefined)
  caps.use({ ...unlimited, maxConnectionsPerSource: 1, maxRequestsPerSource: 1 })
  const second = enter()
  assert.ok(second)
  assert.equal(enter(), false)
  second.emit('close')
  assert.ok(enter())
  const mayAsk = caps.requestsOf('192.0.2.1')
  assert.deepEqual([mayAsk?.(), mayAsk?.(), mayAsk?.()], [true, true, false])
  caps.use(unlimited)
  assert.equal(caps.requestsOf('192.0.2.1'), undefined)
  assert.ok(enter())
  caps.close()
})

test('so does a new limit of handshakes', () => {
  const { caps } = start()
  caps.use({ ...unlimited, maxHandshakes: 1 })
  assert.deepEqual(
    [1, 2, 3].map(() => caps.shake('192.0.2.1')),
    [true, true, false],
  )
  caps.use(unlimited)
  assert.equal(caps.shake('192.0.2.1'), true)
  caps.close()
})
