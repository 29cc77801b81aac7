import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchStolenTime } from './stolen-time.ts'

function shareOf(before: string, after: string): number {
  const texts = [before, after]
  return watchStolenTime(() => texts.shift() ?? '')()
}

test('the share counts only time with work to do', () => {
  // user, nice, system, idle, waiting, irq, softirq, steal, guest, guest_nice
  const before = 'cpu  100 0 100 1000 10 0 0 50 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n'
  assert.equal(shareOf(before, 'cpu  150 0 120 2000 90 0 0 80 9 0\n'), 0.3)
  assert.equal(shareOf(before, 'cpu  150 0 150 2000 90 0 0 50 9 0\n'), 0)
})

test('it is 0 if the kernel does not report it', () => {
  assert.equal(shareOf('', ''), 0)
  assert.equal(shareOf('cpu  1 2 3 4\n', 'cpu  1 2 3 4\n'), 0)
})
