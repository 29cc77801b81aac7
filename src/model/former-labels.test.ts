import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FormerLabels, type FormerLabelTunnel } from './former-labels.ts'

function tunnel(id: string, labels: Readonly<Record<string, string>>): FormerLabelTunnel {
  return { id, startedAt: 1, labels }
}

test('the tunnels of a session are returned once', () => {
  const former = new FormerLabels()
  const tunnels = [tunnel('tn_1', { a: '1', b: '2' }), tunnel('tn_3', { b: '2', a: '1' })]
  former.remember('ts_1', tunnels)
  assert.equal(former.count, 2)
  assert.deepEqual(former.take('ts_1'), tunnels)
  assert.equal(former.count, 0)
  assert.deepEqual(former.take('ts_1'), [])
})

test('a session without label tunnels is not remembered', () => {
  const former = new FormerLabels()
  former.remember('ts_1', [])
  assert.deepEqual(former.take('ts_1'), [])
})

test('the sessions that ended first are forgotten first', () => {
  const former = new FormerLabels({ max: 3 })
  for (const id of ['1', '2', '3', '4']) former.remember(`ts_${id}`, [tunnel(`tn_${id}`, { a: id })])
  assert.equal(former.count, 3)
  assert.deepEqual(former.take('ts_1'), [])
  assert.equal(former.take('ts_2').length, 1)
  former.remember('ts_5', [tunnel('tn_5', { a: '1' }), tunnel('tn_6', { a: '2' }), tunnel('tn_7', { a: '3' })])
  assert.equal(former.count, 3)
  assert.equal(former.take('ts_5').length, 3)
})
