/** Pages call `npx postern`, which the tests that follow them replace; here the real npx runs. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

test('in a clone `npx postern` runs the clone, even with an empty cache of npm', (t) => {
  const cache = mkdtempSync(join(tmpdir(), 'postern-npx-'))
  t.after(() => rmSync(cache, { recursive: true, force: true }))
  const env = { ...process.env, npm_config_cache: cache, npm_config_offline: 'true' }
  const output = execFileSync('npx', ['postern', '--version'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  assert.match(output, /^postern \d+\.\d+\.\d+/)
})
