import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { carriedSettings, carry, carryToWorker } from './carried-settings.ts'
import { readSettings } from './read-settings.ts'

const settings = readSettings({
  flags: { 'outbound-allow': '10.0.0.0/8', workers: '2' },
  env: {
    POSTERN_BOOTSTRAP_API_KEY: 'k'.repeat(32),
    POSTERN_ACME_EAB_KEY: 'e'.repeat(32),
    POSTERN_ACME_DNS_KEY: `hmac-sha512:postern:${'d'.repeat(32)}`,
    POSTERN_DATABASE_URL: 'postgres://u:hunter2@db.example.com/postern',
  },
  cwd: '/srv',
})

const across = <T>(value: T): T => deserialize(serialize(value)) as T

test('settings arrive in another process unchanged and frozen, with secrets that cannot be printed', () => {
  const arrived = carriedSettings(across(carry(settings)))
  const { bootstrap, ...plain } = arrived
  const { bootstrap: _, ...were } = settings
  assert.deepEqual(plain, were)
  assert.equal(bootstrap.apiKey?.reveal(), 'k'.repeat(32))
  assert.equal(bootstrap.authtoken, null)
  assert.equal(arrived.acmeEabKey?.reveal(), 'e'.repeat(32))
  assert.equal(arrived.acmeDnsKey?.secret.reveal(), 'd'.repeat(32))
  assert.doesNotMatch(JSON.stringify(arrived), /kkkk|eeee|dddd/)
  assert.ok(Object.isFrozen(arrived) && Object.isFrozen(arrived.outboundAllow))
})

test('a worker does not get the database, its key and the first credentials', () => {
  const carried = across(carryToWorker(settings))
  assert.doesNotMatch(JSON.stringify(carried), /hunter2|kkkk|eeee|dddd|secret\.key/)
  const arrived = carriedSettings(carried)
  assert.deepEqual(arrived.bootstrap, { apiKey: null, authtoken: null })
  assert.deepEqual([arrived.workers, arrived.domain], [2, settings.domain])
})
