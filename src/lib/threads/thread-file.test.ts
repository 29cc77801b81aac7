import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { threadFile } from './thread-file.ts'

const cases: [from: string, file: string][] = [
  ['file:///a/src/store/b.ts', 'file:///a/src/store/x-thread.ts'],
  ['file:///a/dist/store/b.js', 'file:///a/dist/store/x-thread.js'],
  ['file:///a/src/store/b.ts?again=1.5', 'file:///a/src/store/x-thread.ts'],
  ['file:///a.b/with%20space/b.ts', 'file:///a.b/with%20space/x-thread.ts'],
]
for (const [from, file] of cases) {
  test(`beside ${from}`, () => assert.equal(threadFile('x-thread', from).href, file))
}

const sources = globSync('src/**/*.ts').filter((file) => !/\/testing\/|\.test\.ts$/.test(file))

test('every thread file that a module names exists', () => {
  const named = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/threadFile\('([^']*)', import\.meta\.url\)/g)].map(([, name]) =>
      join(dirname(file), `${name}.ts`),
    ),
  )
  assert.ok(named.length >= 3)
  assert.deepEqual(
    named.filter((file) => !existsSync(file)),
    [],
  )
})

test('no module names a source file that the package does not contain', () => {
  const naming = sources.filter((file) => /new URL\([^)]*\.ts\b/.test(readFileSync(file, 'utf8')))
  assert.deepEqual(naming, [])
})
