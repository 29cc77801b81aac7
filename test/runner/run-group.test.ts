/** Files that share a process keep to themselves, and each is reported as its own. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type GroupOutcome, type GroupSettings, runGroup } from './run-group.ts'

interface Ran extends GroupOutcome {
  readonly text: string
  /** The files, by the names that the test gave them. */
  readonly files: readonly string[]
  readonly ended: number
}

async function run(
  t: TestContext,
  texts: Readonly<Record<string, string>>,
  { workers, ...settings }: Partial<GroupSettings> & { readonly workers?: string } = {},
): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-group-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const files = Object.entries(texts).map(([name, text]) => {
    const head =
      "import { test, describe, before, after, beforeEach } from 'node:test'\nimport assert from 'node:assert/strict'\n"
    writeFileSync(join(folder, name), head + text)
    return join(folder, name)
  })
  let [text, ended] = ['', 0]
  const outcome = await runGroup(
    { files, ...(workers !== undefined && { workers }) },
    {
      patterns: [],
      isTalkative: false,
      fileLimitMs: 60_000,
      env: {},
      signal: t.signal,
      print: (more) => {
        text += more
      },
      onFile: () => ended++,
      ...settings,
    },
  )
  return { ...outcome, files, text, ended }
}

const good = "test('good', () => {})"

test('they keep their hooks to themselves, and take turns', async (t) => {
  const noted = (name: string) => `
    globalThis.notes ??= []
    globalThis.notes.push('load ${name}')
    before(() => globalThis.notes.push('begin ${name}'))
    beforeEach(() => globalThis.notes.push('each ${name}'))
    after(() => globalThis.notes.push('end ${name}'))
    test('${name}', async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      globalThis.notes.push('test ${name}')
    })`
  const { text, failed, counts, ended, costs, files } = await run(t, {
    'a.test.mjs': noted('a'),
    'b.test.mjs': noted('b'),
    'c.test.mjs': `test('c', () => assert.deepEqual(globalThis.notes, [
      'load a', 'begin a', 'each a', 'test a', 'end a', 'load b', 'begin b', 'each b', 'test b', 'end b']))`,
  })
  assert.equal(text, '')
  assert.deepEqual(failed, [])
  assert.deepEqual(counts, { tests: 3, passed: 3, skipped: 0 })
  assert.equal(ended, 3)
  assert.deepEqual(
    costs.map(({ file }) => file),
    files,
  )
  assert.ok(costs.every(({ cpu, wall }) => cpu >= 0 && wall > 0))
})

test('they fail by themselves: with place, output and the command that repeats it, and the others still run', async (t) => {
  const { text, failed, files, counts } = await run(t, {
    'a.test.mjs': `console.log('a word of another file')\n${good}`,
    'b.test.mjs': `describe('the (b)', () => {
      test("isn't good", () => { console.log('a word before'); assert.fail('on purpose') })
    })`,
    'c.test.mjs': "throw new Error('does not load')",
    'd.test.mjs': `${good}\nafter(() => { throw new Error('a hook') })`,
    'e.test.mjs': good,
  })
  const [, b = '', c = '', d = ''] = files
  assert.deepEqual(
    failed,
    [b, c, d].map((file) => ({ files: [file] })),
  )
  assert.equal(counts.passed, 3)
  assert.match(text, /a word before/)
  assert.doesNotMatch(text, /a word of another file/)
  assert.match(text, /✖ \S+b\.test\.mjs > the \(b\) > isn't good \(\d+ ms\)\n {2}at \S+b\.test\.mjs:4:7\n/)
  assert.match(text, /on purpose/)
  assert.ok(text.includes(`again: node --test --test-name-pattern='^the \\(b\\) isn'\\''t good$' ${b}\n`), text)
  assert.match(text, /does not load/)
  assert.ok(text.includes(`again: node --test ${c}\n`), text)
  assert.match(text, /a hook/)
})

test('they may wait for what keeps no process awake', async (t) => {
  const waiting = "test('waits', () => new Promise((resolve) => setTimeout(resolve, 20).unref()))"
  const { failed } = await run(t, { 'a.test.mjs': waiting, 'b.test.mjs': waiting })
  assert.deepEqual(failed, [])
})

test('a part of a test is repeated with the whole of it', async (t) => {
  const { text } = await run(t, { 'a.test.mjs': "test('a', (t) => t.test('part', () => assert.fail()))" })
  assert.match(text, /a\.test\.mjs > a > part /)
  assert.match(text, /--test-name-pattern='\^a\$' /)
  assert.equal(text.match(/✖/g)?.length, 1)
})

test('their servers may have a number of workers, which a failure names', async (t) => {
  const workers = fileURLToPath(new URL('../support/test-workers.ts', import.meta.url))
  const seen = `import { testWorkers } from '${workers}'\ntest('seen', () => assert.equal(testWorkers, 0))`
  const { text, failed, files, costs } = await run(t, { 'a.test.mjs': seen }, { workers: '3' })
  assert.match(text, /✖ \S+a\.test\.mjs with 3 workers > seen/)
  assert.match(text, /3 !== 0/)
  assert.match(text, /again: POSTERN_TEST_WORKERS=3 node --test /)
  assert.deepEqual(failed, [{ files, workers: '3' }])
  assert.deepEqual(
    costs.map(({ file }) => file),
    [`${files[0]} with 3 workers`],
  )
})

test('only the tests of a pattern run', async (t) => {
  const { counts } = await run(t, { 'a.test.mjs': `${good}\ntest('bad', () => assert.fail())` }, { patterns: ['goo'] })
  assert.deepEqual(counts, { tests: 1, passed: 1, skipped: 0 })
})

test('a file whose process ends early has failed, and what it printed is shown', async (t) => {
  const ends = "test('ends', () => { console.log('last words'); process.exit(0) })"
  const { text, failed, files } = await run(t, { 'a.test.mjs': ends })
  assert.deepEqual(failed, [{ files }])
  assert.match(text, /last words\n✖ \S+a\.test\.mjs: the process ended before its tests/)
})

test('a file that takes too long is killed, and what it started with it', async (t) => {
  const endless = `import { spawn } from 'node:child_process'
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
    test('endless', () => { for (;;); })`
  const { text, failed, files } = await run(t, { 'a.test.mjs': good, 'b.test.mjs': endless }, { fileLimitMs: 2000 })
  assert.deepEqual(failed, [{ files: files.slice(1) }])
  assert.match(text, /b\.test\.mjs ran for more than 2 s and was killed/)
})
