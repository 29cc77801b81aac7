/** Pages call the command `npx postern`, which the tests that follow them exchange: here it is npm's own. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

test('in a clone `npx postern` is the clone, for whoever uses it for the first time', (t) => {
  const cache = mkdtempSync(join(tmpdir(), 'postern-npx-'))
  t.after(() => rmSync(cache, { recursive: true, force: true }))
  const env = { ...process.env, npm_config_cache: cache, npm_config_offline: 'true' }
  const said = execFileSync('npx', ['postern', '--version'], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  assert.match(said, /^postern \d+\.\d+\.\d+/)
})
