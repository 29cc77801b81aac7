import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { searchProgram } from '../lib/patterns/pattern-search.ts'
import { WorkerPool } from '../lib/threads/worker-pool.ts'
import { EdgeWork } from './edge-worker-tasks.ts'

function start(t: TestContext): EdgeWork {
  const pool = new WorkerPool(new URL('../server/compose/data-thread.ts', import.meta.url))
  t.after(() => pool.close())
  return new EdgeWork(pool)
}

test('patterns compiled on another thread work here', async (t) => {
  const work = start(t)
  const search = searchProgram(await work.compilePatterns(['^\\p{Greek}+$', '(?i)^größe$']))
  for (const [text, expected] of Object.entries({ αβγ: true, GRÖẞE: true, GRÖSSE: false, abc: false })) {
    assert.equal(search(text, 100_000), expected, text)
  }
})

test('patterns of a hundred edges visited at once, as after a restart, are all compiled', async (t) => {
  const work = start(t)
  const programs = await Promise.all(Array.from({ length: 100 }, (_, i) => work.compilePatterns([`^visitor-${i}$`])))
  for (const [i, program] of programs.entries()) assert.equal(searchProgram(program)(`visitor-${i}`, 10_000), true)
})
