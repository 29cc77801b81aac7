import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FormerLabels } from './label-ids.ts'
import type { Tunnel } from './live.ts'

/** No more of a tunnel is looked at than this. */
function tunnel(id: string, labels?: Readonly<Record<string, string>>): Tunnel {
  return { id, startedAt: 1, ...(labels && { labels }) } as Tunnel
}

test('what a session had is remembered once, and only its label tunnels', () => {
  const former = new FormerLabels()
  former.remember('ts_1', [tunnel('tn_1', { a: '1', b: '2' }), tunnel('tn_2'), tunnel('tn_3', { b: '2', a: '1' })])
  assert.equal(former.count, 2)
  assert.deepEqual(
    [...(former.take('ts_1')?.values() ?? [])],
    [
      [
        { id: 'tn_1', startedAt: 1 },
        { id: 'tn_3', startedAt: 1 },
      ],
    ],
  )
  assert.equal(former.count, 0)
  assert.equal(former.take('ts_1'), undefined)
})

test('a session without label tunnels leaves nothing', () => {
  const former = new FormerLabels()
  former.remember('ts_1', [tunnel('tn_1')])
  assert.equal(former.take('ts_1'), undefined)
})

test('sessions that are long gone are forgotten first', () => {
  const former = new FormerLabels({ max: 3 })
  for (const id of ['1', '2', '3', '4']) former.remember(`ts_${id}`, [tunnel(`tn_${id}`, { a: id })])
  assert.equal(former.count, 3)
  assert.equal(former.take('ts_1'), undefined)
  assert.ok(former.take('ts_2'))
  former.remember('ts_5', [tunnel('tn_5', { a: '1' }), tunnel('tn_6', { a: '2' }), tunnel('tn_7', { a: '3' })])
  assert.equal(former.count, 3)
  assert.ok(former.take('ts_5'))
})
