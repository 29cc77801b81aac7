import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesOf } from './changes.ts'
import { readSettings } from './read-settings.ts'
import { settings } from './settings-table.ts'

const read = (flags: Readonly<Record<string, string>> = {}, env: Readonly<Record<string, string>> = {}) =>
  readSettings({ flags, env, cwd: '/srv' })

const running = read()
/** Settings of several nodes need PostgreSQL. */
const database = { 'database-url': 'postgres://postern@db.example.com/postern' }
const inCluster = read(database)

for (const { name, example, isLive, envOnly, default: fallback } of settings) {
  if (envOnly || example === fallback) continue
  test(`a new ${name} ${isLive ? 'is applied' : 'needs a restart'}`, () => {
    const isOfCluster = /^(cluster-.*|agent-address)$/.test(name)
    const before = isOfCluster ? inCluster : running
    const next = read({ ...(isOfCluster && database), [name]: example })
    const { settings: after, taken, pending } = changesOf(before, next)
    assert.ok((isLive ? taken : pending).includes(name))
    // Settings that depend on one that needs a restart may change along with it.
    assert.deepEqual(isLive ? pending : taken, [])
    assert.deepEqual(after, isLive ? next : before)
  })
}

test('settings that are the same change nothing', () => {
  assert.deepEqual(changesOf(running, read()), { settings: running, taken: [], pending: [] })
})

test('credentials of the first start are not compared', () => {
  const { taken, pending } = changesOf(running, read({}, { POSTERN_BOOTSTRAP_API_KEY: 'k'.repeat(32) }))
  assert.deepEqual([...taken, ...pending], [])
})

test('the address of a handed-in socket does not count as a change', () => {
  const handed = new Map([['https-listen', '[::]:443']])
  const given = { flags: {}, env: {}, cwd: '/srv', handed }
  const settings = readSettings(given)
  assert.deepEqual(settings.httpsListen, { host: '::', port: 443 })
  assert.equal(settings.publicHttpsPort, 443)
  assert.deepEqual(changesOf(settings, readSettings({ ...given, isServing: true })).pending, [])
})
