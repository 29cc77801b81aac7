/** Which tests a change can reach. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testsReaching } from './changed-files.ts'
import { readReferences } from './import-graph.ts'

const sources = new Map(
  Object.entries({
    'src/main.ts': "import { serve } from './serve.ts'",
    'src/serve.ts': "new Worker(threadFile('serve-thread', import.meta.url))",
    'src/serve-thread.ts': "import type { Told } from './types.ts'",
    'src/types.ts': '',
    'src/lone.ts': '',
    'src/lone.test.ts': "import './lone.ts'",
    'test/support/sources.ts': '',
    'test/house.test.ts': "import './support/sources.ts'",
    'test/program.ts': "new URL('../bin/postern.js', import.meta.url)",
    'test/e2e/start.test.ts': "import '../program.ts'",
    'test/docs/pages.test.ts': "readPage('docs/agent.md')",
  }),
)
const tests = [...sources.keys()].filter((file) => file.endsWith('.test.ts'))
const reaching = (...changed: string[]) =>
  testsReaching(changed, tests, readReferences(sources), (file) => sources.get(file) ?? '')

const HOUSE = 'test/house.test.ts'

test('those that import a changed file, and always those that read all sources', () => {
  assert.deepEqual(reaching('src/lone.ts').files, ['src/lone.test.ts', HOUSE])
  assert.deepEqual(reaching('src/lone.test.ts').files, ['src/lone.test.ts', HOUSE])
  assert.deepEqual(reaching('src/types.ts').files, [HOUSE])
})

test('those that start it as a program or a thread', () => {
  assert.deepEqual(reaching('src/serve-thread.ts').files, [HOUSE, 'test/e2e/start.test.ts'])
})

test('those that read it by its name, if it is no source', () => {
  assert.deepEqual(reaching('docs/agent.md').files, [HOUSE, 'test/docs/pages.test.ts'])
  assert.deepEqual(reaching('.ci/run').files, [HOUSE])
})

test('all of them if every test depends on it, and none if nothing is changed', () => {
  assert.deepEqual(reaching('src/lone.ts', 'package.json'), { files: tests, reason: 'package.json' })
  assert.deepEqual(reaching(), { files: [] })
})
