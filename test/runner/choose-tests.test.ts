import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseTests, longRuns } from './choose-tests.ts'

test('a word is a file, a folder or a pattern', () => {
  assert.deepEqual(chooseTests(['test/runner/choose-tests.test.ts', 'a word']), {
    files: ['test/runner/choose-tests.test.ts'],
    patterns: ['a word'],
  })
  assert.ok(chooseTests(['test/runner']).files.includes('test/runner/choose-tests.test.ts'))
  assert.ok(chooseTests([]).files.includes('test/runner/choose-tests.test.ts'))
  assert.throws(() => chooseTests(['test/runner/none.test.ts']), /there is no test file at test\/runner\/none/)
})

test('a long run is chosen by its name, its file, or a part of the name of a test', () => {
  const documents = { files: ['test/fuzz/documents.long.ts'], patterns: [] }
  assert.deepEqual(chooseTests(['documents'], 'fuzz'), documents)
  assert.deepEqual(chooseTests(['test/fuzz/documents.long.ts'], 'fuzz'), documents)
  assert.deepEqual(chooseTests(['SQLite'], 'crash'), { files: ['test/crash/crash.long.ts'], patterns: ['SQLite'] })
  assert.deepEqual(chooseTests([], 'fuzz').files.length, longRuns('fuzz').length)
})

test('a word that matches no long run is refused with a list of the runs', () => {
  assert.throws(() => chooseTests(['nonsense'], 'crash'), {
    message: 'npm run crash has no run or test called nonsense; runs are crash',
  })
  assert.throws(() => chooseTests(['nonsense'], 'soak'), /runs are bad-days, chaos, .*traffic$/)
})
