import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchIdleCores } from './idle-cores.ts'

function idleAfter(own: number, before: readonly Times[], after: readonly Times[]): number {
  const reads = [before, after].map((times) => times.map(infoOf))
  return watchIdleCores(() => reads.shift() ?? [], own)()
}

type Times = readonly [user: number, idle: number]

function infoOf([user, idle]: Times) {
  return { model: '', speed: 0, times: { user, nice: 0, sys: 0, idle, irq: 0 } }
}

test('only the time since the last call counts', () => {
  const before: Times[] = [
    [5000, 0],
    [5000, 0],
  ]
  assert.equal(
    idleAfter(
      2,
      before,
      before.map(([user, idle]) => [user + 100, idle + 100] as const),
    ),
    1,
  )
})

test('of many cores only those that we may use count, and what others use is not idle', () => {
  const none: Times[] = Array.from({ length: 8 }, () => [0, 0])
  const two = none.map((_, core): Times => (core < 2 ? [100, 0] : [0, 100]))
  assert.equal(idleAfter(4, none, two), 2)
  assert.equal(idleAfter(2, none, two), 0)
})

test('a system that does not count has no idle cores', () => {
  assert.equal(idleAfter(4, [], []), 0)
})
