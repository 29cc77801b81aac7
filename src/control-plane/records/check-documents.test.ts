import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { type LaneOptions, WorkerPool } from '../../lib/threads/worker-pool.ts'
import { BindRefusal } from '../../model/endpoint.ts'
import { Refusal } from '../../model/errors.ts'
import { agentModules } from '../../modules/agent-options/options.ts'
import { modulesAt } from '../../modules/forms.ts'
import type { ModuleConfig } from '../../modules/module.ts'
import { formsOf } from '../../modules/spellings.ts'
import { tlsCertificates } from '../resources/tls-certificates.ts'
import { Documents } from './check-documents.ts'

function start(t: TestContext, options: LaneOptions = {}): { documents: Documents; pool: WorkerPool } {
  const pool = new WorkerPool(new URL('../../server/compose/control-thread.ts', import.meta.url))
  t.after(() => pool.close())
  return { pool, documents: new Documents(pool, options) }
}

function read(documents: Documents, spelling: string, config: Record<string, unknown>, owner = 'usr_1') {
  const module = modulesAt('route').find((each) => formsOf(each, 'route').some(({ name }) => name === spelling))
  const form = module && formsOf(module, 'route').find(({ name }) => name === spelling)
  assert.ok(module && form)
  const given = { enabled: true, ...config } as ModuleConfig
  return documents.readModule(owner, { module, form, given, where: { place: 'route', at: `${spelling}.` } })
}

/** Fewer than are refused, and more than are checked on this thread. */
const dear = Array.from({ length: 40 }, (_, i) => `[\\pL${i}]+`)

test('an ordinary filter is checked on this thread', async (t) => {
  const { documents, pool } = start(t)
  const filter = { allow: ['(?i)google-images'], deny: ['(?i)google', '^curl/', 'Mozilla/5\\.0 \\(.*(Windows|Linux)'] }
  assert.deepEqual(await read(documents, 'user_agent_filter', filter), { enabled: true, ...filter })
  assert.equal(pool.threads, 0)
})

test('an expensive filter is checked on another thread', async (t) => {
  const { documents, pool } = start(t)
  const stored = await read(documents, 'user_agent_filter', { allow: dear, deny: [] })
  assert.deepEqual(stored, { enabled: true, allow: dear, deny: [] })
  assert.equal(pool.threads, 1)
})

test('a refusal on the other thread is the same as on this one', async (t) => {
  const { documents } = start(t)
  await assert.rejects(read(documents, 'user_agent_filter', { allow: [...dear, '('], deny: [] }), (error) => {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'BAD_REGEX')
    assert.match(error.message, /^`user_agent_filter\.allow\[40\]` is not a valid RE2/)
    return true
  })
  const rules = { inbound: [{ name: '', expressions: [], actions: [{ type: 'deny', config: { status_code: 'x' } }] }] }
  await assert.rejects(read(documents, 'policy', rules), (error) => {
    assert.ok(error instanceof BadValue)
    assert.match(error.field, /status_code$/)
    return true
  })
})

test('a policy is never checked on this thread, in either spelling', async (t) => {
  const { documents, pool } = start(t)
  const rules = { inbound: [{ name: '', expressions: ["req.method == 'GET'"], actions: [{ type: 'deny' }] }] }
  assert.deepEqual(await read(documents, 'policy', rules), { enabled: true, ...rules })
  const text = 'inbound:\n  - expressions: ["req.method == \'GET\'"]\n    actions: [{ type: deny }]\n'
  const stored = await read(documents, 'traffic_policy', { value: text })
  assert.deepEqual(stored.inbound, rules.inbound)
  assert.equal(pool.threads, 1)
})

test('a document that takes too long is refused by name', async (t) => {
  const { documents } = start(t, { limitMs: 5 })
  const slow = { value: '}'.repeat(64 * 1024) }
  await assert.rejects(read(documents, 'traffic_policy', slow), (error) => {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'TOO_COSTLY')
    assert.match(error.message, /^`traffic_policy` took longer than 3 s to check; make it smaller or simpler$/)
    return true
  })
})

test('a caller that sends more than can wait is asked to retry later', async (t) => {
  const { documents } = start(t, { waiting: 32 })
  const all = Array.from({ length: 60 }, () => read(documents, 'user_agent_filter', { allow: dear, deny: [] }))
  const others = read(documents, 'user_agent_filter', { allow: dear, deny: [] }, 'usr_2')
  const outcomes = await Promise.allSettled(all)
  const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
  assert.equal(outcomes.length - refused.length, 33)
  for (const error of refused) {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'CHECKS_BUSY')
    assert.equal(error.headers['retry-after'], '3')
  }
  assert.equal((await others).enabled, true)
})

test('long metadata, long headers and many certificates are read on another thread, short ones on this one', async (t) => {
  const { documents, pool } = start(t)
  const headers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 'v'.repeat(4000)]))
  await read(documents, 'request_headers', { add: headers(2), remove: [] })
  await assert.rejects(read(documents, 'saml', { idp_metadata: '<a/>', authorized_groups: [] }), BadValue)
  assert.equal(pool.threads, 0)
  await read(documents, 'response_headers', { add: headers(100), remove: [] })
  const metadata = `<a>${'<b/>'.repeat(12_000)}</a>`
  await assert.rejects(read(documents, 'saml', { idp_metadata: metadata, authorized_groups: [] }), BadValue)
  const opts = { MutualTLSCA: { mutual_tls_ca: 'A'.repeat(100_000) } }
  await assert.rejects(documents.bindModules('usr_1', { proto: 'https', opts }), BindRefusal)
  assert.equal(pool.threads, 1)
})

test('an expensive bind gives the same result as one that is read on this thread', async (t) => {
  const { documents, pool } = start(t)
  const here = agentModules('https', { UserAgentFilter: { deny: ['curl'] }, Compression: true })
  assert.ok(!(here instanceof BindRefusal))
  const large = { UserAgentFilter: { deny: dear }, Compression: true }
  const there = await documents.bindModules('usr_1', { proto: 'https', opts: large })
  assert.deepEqual(there, { ...here, route: { ...here.route, user_agent_filter: { allow: [], deny: dear } } })
  assert.equal(pool.threads, 1)
  const bad = { useragentfilter: { deny: [...dear, '('] } }
  await assert.rejects(documents.bindModules('usr_1', { proto: 'https', opts: bad }), (error) => {
    assert.ok(error instanceof BindRefusal)
    assert.match(error.message, /not a valid RE2/)
    return true
  })
})

test('a long chain of certificates is read on another thread, and a fault in it is reported as on this one', async (t) => {
  const { documents, pool } = start(t)
  const { privateKeyPem, certificatePem } = await makeIdentity({ dnsNames: ['app.example.com'] })
  const fields = { certificate_pem: certificatePem, private_key_pem: privateKeyPem, description: '', metadata: '' }
  const settle = (certificate_pem: string) =>
    documents.settle('usr_1', tlsCertificates, { ...fields, certificate_pem }, {} as never)
  const settled = await settle(certificatePem)
  assert.equal(pool.threads, 0)
  const long = `${certificatePem}\n${'# a comment between two certificates\n'.repeat(200)}`
  assert.deepEqual(await settle(long), { ...settled, certificate_pem: long })
  assert.equal(pool.threads, 1)
  await assert.rejects(settle(certificatePem.repeat(20)), (error) => {
    assert.ok(error instanceof Refusal)
    assert.equal(error.code, 'BAD_TLS_CERTIFICATE')
    return true
  })
})
