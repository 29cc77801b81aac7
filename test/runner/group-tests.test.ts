/** Which test files share a process, and in which order groups run. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { groupTests, longestFirst } from './group-tests.ts'

const nothing = () => ''
const second = () => 1
const members = (...given: Parameters<typeof groupTests>) => groupTests(...given).map(({ files }) => files)

describe('groups', () => {
  test('hold every file once, however many there are', () => {
    const files = Array.from({ length: 100 }, (_, i) => [
      `src/lib/${i}.test.ts`,
      `test/e2e/${i}.test.ts`,
      `test/docs/${i}.test.ts`,
    ])
    const groups = members(files.flat(), second, nothing)
    assert.deepEqual(groups.flat().toSorted(), files.flat().toSorted())
    assert.ok(groups.length < files.flat().length / 2)
  })

  test('are of a length, and a long file is one by itself', () => {
    const seconds: Record<string, number> = { 'src/a.test.ts': 36, 'src/b.test.ts': 27, 'src/long.test.ts': 100 }
    const files = [...Object.keys(seconds), 'src/c.test.ts']
    assert.deepEqual(
      members(files, (file) => seconds[file] ?? 24, nothing),
      [['src/long.test.ts'], ['src/a.test.ts'], ['src/b.test.ts', 'src/c.test.ts']],
    )
  })

  test('run the longest first', () => {
    const groups = [{ files: ['a', 'b'] }, { files: ['c'] }, { files: ['c'], workers: '2' }]
    const seconds: Record<string, number> = { 'c with 2 workers': 5, c: 1 }
    assert.deepEqual(
      longestFirst(groups, (file) => seconds[file] ?? 2),
      [groups[2], groups[0], groups[1]],
    )
  })

  test('leave a file alone if it looks at its process', () => {
    const text = (file: string) => (file === 'src/b.test.ts' ? 'const { rss } = process.memoryUsage()' : '')
    const files = ['src/a.test.ts', 'src/b.test.ts', 'src/c.test.ts']
    assert.deepEqual(members(files, second, text), [['src/b.test.ts'], ['src/a.test.ts', 'src/c.test.ts']])
  })
})
