import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { runInThisContext } from 'node:vm'
import { modules } from './forms.ts'
import { request, response } from './testing/test-request.ts'
import { testTools } from './testing/test-tools.ts'
import { modulesInOrder } from './traffic.ts'

test('every form has its traffic, in the same order; a backend, which is last, needs none', () => {
  const names = modulesInOrder.map(({ name }) => name)
  assert.deepEqual([...names, 'backend'], [...modules.map(({ name }) => name)])
})

const require = createRequire(import.meta.url)
const tools = testTools()
/** The fields that all logins share. */
const login = { options_passthrough: false, cookie_prefix: '', inactivity_timeout: 0, maximum_duration: 0 }

for (const file of globSync('src/modules/*/traffic.ts')) {
  test(`the example in the header of ${file} gives what it says`, async () => {
    const [, example = ''] = /^\/\*\*[\s\S]*? \* @example\n([\s\S]*?) \*\/\n/.exec(readFileSync(file, 'utf8')) ?? []
    const lines = example.split('\n').map((line) => line.replace(/^ \* ?/, ''))
    const checked = lines.map((line) => line.replace(/^(\S.*) \/\/ (.*)$/, 'assert.deepEqual($1, $2)'))
    const own = require(resolve(file)) as Record<string, unknown>
    const known = { ...own, request, response, login, assert, tools, URL }
    const code = `async ({ ${Object.keys(known).join(', ')} }) => {\n${checked.join('\n')}\n}`
    assert.match(code, /assert\.deepEqual/)
    await (runInThisContext(code) as (names: typeof known) => Promise<void>)(known)
  })
}
