/** With async context, Node's test runner knows which test each call belongs to, just as with its own hook. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

/** Tests that pass when the runner tracks ownership, and some that fail by errors that nobody awaits. */
const TESTS = `
import assert from 'node:assert/strict'
import { readFile } from 'node:fs'
import { after, afterEach, before, describe, test } from 'node:test'
const order = []
// Long against the millisecond of the timers below, whatever else the machine does.
const pause = () => new Promise((resolve) => setTimeout(resolve, 200))
describe('a suite', () => {
  before(() => order.push('before'))
  after(() => order.push('after'))
  afterEach(() => order.push('each'))
  test('has hooks of its own', async () => {
    await pause()
    after(() => order.push('hook'))
    assert.deepEqual(order, ['before'])
  })
  test('whose order holds', () => assert.deepEqual(order, ['before', 'each', 'hook']))
})
describe('a suite that waits', async () => {
  await pause()
  test('has tests', async (t) => {
    assert.equal(t.fullName, 'a suite that waits > has tests')
    await t.test('and they have theirs', async (u) => assert.equal(u.fullName, t.fullName + ' > and they have theirs'))
    await pause()
    await test('also by another name', (u) => assert.equal(u.fullName, t.fullName + ' > also by another name'))
  })
})
test('after it all', () => assert.deepEqual(order, ['before', 'each', 'hook', 'each', 'after']))
describe('side by side', { concurrency: true }, () => {
  test('one throws in a timer', async () => {
    setTimeout(() => { throw new Error('of a timer') }, 1)
    await pause()
  })
  test('another is well', pause)
})
test('throws in a callback', async () => {
  readFile('/', () => { throw new Error('of a callback') })
  await new Promise(() => setTimeout(() => {}, 60_000).unref())
})
test('rejects at once', async () => { Promise.reject(new Error('of a promise')); await pause() })
test('rejects later', async () => { setTimeout(async () => { await null; throw new Error('of a later promise') }, 1); await pause() })
test('throws when it is over', () => { setTimeout(() => { throw new Error('too late') }, 1) })
test('is well', pause)
`

test("each test has its own hooks, subtests and errors, as with node's own hook", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-owners-'))
  after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'owners.test.mjs')
  await writeFile(file, TESTS)
  const [ours, nodes] = await Promise.all([
    report(file, [`--import=${new URL('test-owners.ts', import.meta.url).href}`]),
    report(file, []),
  ])
  assert.deepEqual(ours, nodes)
  const failed = ours.filter((line) => line.trim().startsWith('not ok')).map((line) => line.replace(/.*- /, ''))
  assert.deepEqual(failed, [
    'one throws in a timer',
    'side by side',
    'throws in a callback',
    'rejects at once',
    'rejects later',
  ])
  assert.ok(ours.some((line) => line.includes('"throws when it is over"')))
})

/** The runner's report about a file, without times and stack traces. */
async function report(file: string, flags: readonly string[]): Promise<string[]> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const printed = await new Promise<string>((resolve) => {
    execFile(process.execPath, [...flags, '--test', '--test-reporter=tap', file], { env }, (_, stdout) =>
      resolve(stdout),
    )
  })
  return printed.split('\n').filter((line) => !/duration_ms|^\s+(at )?\S+ ?\(?(file|node):|^ +\w+ \(node:/.test(line))
}
