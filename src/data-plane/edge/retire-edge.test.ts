import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { retireEdge } from './retire-edge.ts'

function retired(t: TestContext, { isBack }: { isBack: boolean }): string[] {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const notes: string[] = []
  const holder = (name: string) => ({
    retire: (edgeId: string) => {
      notes.push(`${name} of ${edgeId} retired`)
      return () => notes.push(`${name} of ${edgeId} ended`)
    },
  })
  retireEdge('edg_1', { streams: holder('streams'), http: holder('http'), isServed: () => isBack, drainMs: 5000 })
  return notes
}

test('connections of an edge that is gone stay open for the drain time', (t) => {
  const notes = retired(t, { isBack: false })
  t.mock.timers.tick(4999)
  assert.deepEqual(notes, ['streams of edg_1 retired', 'http of edg_1 retired'])
  t.mock.timers.tick(1)
  assert.deepEqual(notes.slice(2), ['streams of edg_1 ended', 'http of edg_1 ended'])
})

test('when the edge is back by then, only its raw streams end', (t) => {
  const notes = retired(t, { isBack: true })
  t.mock.timers.tick(5000)
  assert.deepEqual(notes.slice(2), ['streams of edg_1 ended'])
})
