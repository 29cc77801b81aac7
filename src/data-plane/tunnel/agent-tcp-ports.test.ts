import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { AgentTcpPorts } from './agent-tcp-ports.ts'

const sorted = (ports: Iterable<number>): number[] => [...ports].sort((a, b) => a - b)

for (const size of [1, 2, 3, 10, 97, 1000]) {
  test(`each of ${size} ports is offered once`, () => {
    for (let i = 0; i < 20; i++) {
      const ports = new AgentTcpPorts({ from: 20_000, to: 19_999 + size }, randomBytes)
      assert.deepEqual(
        sorted(ports.choices()),
        Array.from({ length: size }, (_, at) => 20_000 + at),
      )
    }
  })
}

test('the order differs each time', () => {
  const ports = new AgentTcpPorts({ from: 20_000, to: 20_999 }, randomBytes)
  const firsts = new Set(Array.from({ length: 100 }, () => ports.choices().next().value))
  assert.ok(firsts.size > 50, String(firsts.size))
})

test('a port in use is not offered; released ports come last, oldest first', () => {
  const ports = new AgentTcpPorts({ from: 1, to: 5 }, randomBytes)
  for (const port of [1, 2, 3, 4]) ports.use(port)
  ports.leave(3)
  ports.leave(1)
  ports.leave(2)
  ports.use(1)
  ports.leave(1)
  assert.deepEqual([...ports.choices()], [5, 3, 2, 1])
  ports.use(3)
  assert.deepEqual([...ports.choices()], [5, 2, 1])
})

test('only ports of the range may be asked for', () => {
  const ports = new AgentTcpPorts({ from: 10, to: 11 }, randomBytes)
  assert.deepEqual(
    [9, 10, 11, 12].map((port) => ports.has(port)),
    [false, true, true, false],
  )
})
