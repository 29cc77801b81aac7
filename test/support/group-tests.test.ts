/** Which test files share a process, and that each is still reported as its own file. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { groupTests, membersOf, writeGroups } from './group-tests.ts'

const nothing = () => ''

describe('groups', () => {
  test('hold every file once, however many there are', () => {
    const files = Array.from({ length: 100 }, (_, i) => [
      `src/lib/${i}.test.ts`,
      `test/e2e/${i}.test.ts`,
      `bench/${i}.ts`,
    ])
    const groups = groupTests(files.flat(), nothing)
    assert.deepEqual(groups.flat().toSorted(), files.flat().toSorted())
    assert.ok(groups.length < files.flat().length / 2)
  })

  test('begin with the longest files', () => {
    const long = 'test/e2e/start-stop.test.ts'
    assert.deepEqual(groupTests(['src/a.test.ts', 'src/b.test.ts', long], nothing)[0], [long])
  })

  test('leave a file alone if it looks at its process', () => {
    const text = (file: string) => (file === 'src/b.test.ts' ? 'const { rss } = process.memoryUsage()' : '')
    const files = ['src/a.test.ts', 'src/b.test.ts', 'src/c.test.ts']
    assert.deepEqual(groupTests(files, text), [['src/a.test.ts', 'src/c.test.ts'], ['src/b.test.ts']])
  })
})

describe('files of a group', () => {
  const reporter = fileURLToPath(new URL('compact-reporter.ts', import.meta.url))

  /** Runs these files as one group. */
  async function run(
    t: { after(run: () => void): void },
    texts: Readonly<Record<string, string>>,
    workers?: string,
  ): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'postern-group-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const files = Object.entries(texts).map(([name, text]) => {
      const head =
        "import { test, before, after, beforeEach } from 'node:test'\nimport assert from 'node:assert/strict'\n"
      writeFileSync(join(folder, name), head + text)
      return join(folder, name)
    })
    const [group = ''] = writeGroups([{ files, ...(workers !== undefined && { workers }) }], folder)
    assert.deepEqual(membersOf(group), files)
    const flags = ['--import', new URL('test-owners.ts', import.meta.url).href, '--test', `--test-reporter=${reporter}`]
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined }
    const running = promisify(execFile)(process.execPath, [...flags, group], { env })
    return running.then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    )
  }

  test('keep their hooks to themselves, and take turns', async (t) => {
    const noted = (name: string) => `
      globalThis.notes ??= []
      before(() => globalThis.notes.push('begin ${name}'))
      beforeEach(() => globalThis.notes.push('each ${name}'))
      after(() => globalThis.notes.push('end ${name}'))
      test('${name}', async () => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        globalThis.notes.push('test ${name}')
      })`
    const output = await run(t, {
      'a.test.ts': noted('a'),
      'b.test.ts': noted('b'),
      'c.test.ts': `test('c', () => assert.deepEqual(globalThis.notes, [
        'begin a', 'each a', 'test a', 'end a', 'begin b', 'each b', 'test b', 'end b']))`,
    })
    assert.match(output, /^\.\.\.\n/, 'a dot for each file')
    assert.match(output, /ℹ tests 3\n/)
    assert.match(output, /ℹ fail 0\n/)
  })

  test('may have a number of workers for their servers, which a failure names', async (t) => {
    const workers = fileURLToPath(new URL('test-workers.ts', import.meta.url))
    const text = `import { testWorkers } from '${workers}'\ntest('seen', () => assert.equal(testWorkers, 0))`
    const output = await run(t, { 'a.test.ts': text }, '3')
    assert.match(output, /a\.test\.ts with 3 workers/)
    assert.match(output, /3 !== 0/)
  })

  test('fail separately: a failure has its place and the output, and the other files still run', async (t) => {
    const output = await run(t, {
      'a.test.ts': "test('good', () => {})",
      'b.test.ts': "test('bad', () => { console.log('a word before'); assert.fail('on purpose') })",
      'c.test.ts': "throw new Error('does not load')",
      'd.test.ts': "test('fine', () => {})",
    })
    assert.match(output, /ℹ pass 2\n/)
    assert.match(output, /test at [^\n]*b\.test\.ts:3:1\n/)
    assert.match(output, /on purpose/)
    assert.match(output, /a word before/)
    assert.match(output, /does not load/)
  })
})
