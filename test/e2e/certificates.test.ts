/** Certificates that the server gets by itself, from an authority that really validates names. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { timestamp } from '../../src/lib/clock.ts'
import { type AcmeServer, type AcmeServerOptions, startAcmeServer } from '../support/acme-server.ts'
import { eachStore } from '../support/databases.ts'
import { metric } from '../support/metrics.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { visit } from '../support/visitor.ts'

async function authorityFor(t: TestContext, options?: AcmeServerOptions): Promise<AcmeServer> {
  const acme = await startAcmeServer(options)
  t.after(() => acme.stop())
  return acme
}

async function platformWith(t: TestContext, acme: AcmeServer, options: PlatformOptions = {}): Promise<Platform> {
  const flags = { 'acme-directory': acme.directory, ...options.flags }
  const platform = await startPlatform({ ...options, flags })
  t.after(() => platform.stop())
  acme.mood.nodes = [platform]
  return platform
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'postern-acme-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}

/** An HTTPS edge that answers by itself. */
async function edge({ admin, httpsPort }: Platform, name: string): Promise<string> {
  const backend = await admin.create('/backends/http_response', { body: 'hello', status_code: 200 })
  const { id } = await admin.create('/edges/https', { hostports: [`${name}:${httpsPort}`] })
  await admin.create(`/edges/https/${id}/routes`, {
    match_type: 'path_prefix',
    match: '/',
    backend: { backend_id: backend.id },
  })
  return id
}

/** Whether visitors who trust the authority reach the name. */
async function isTrusted(platform: Platform, acme: AcmeServer, name: string): Promise<boolean> {
  try {
    const { text } = await visit(`https://${name}:${platform.httpsPort}`, { ca: acme.ca })
    return text === 'hello'
  } catch {
    return false
  }
}

const issued = (platform: Platform, acme: AcmeServer, name: string) =>
  until(`${name} has a certificate of the authority`, () => isTrusted(platform, acme, name))

eachStore((store) => {
  for (const kind of ['http-01', 'tls-alpn-01'] as const) {
    test(`an HTTPS edge gets a certificate by ${kind}`, async (t) => {
      const acme = await authorityFor(t)
      acme.mood.offers = [kind]
      const platform = await platformWith(t, acme, { databaseUrl: await store.url() })
      await edge(platform, 'app.example.com')
      await issued(platform, acme, 'app.example.com')
      const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
      assert.equal(all.length, 1)
      assert.deepEqual(all[0].subject_alternative_names.dns_names, ['app.example.com'])
      assert.ok(all[0].issued_at)
      assert.equal(acme.count('order'), 1)
    })
  }

  test('a reserved domain with a policy shows its progress, and its certificate', async (t) => {
    const acme = await authorityFor(t)
    let letOn: () => void = () => {}
    const held = new Promise<void>((resolve) => {
      letOn = resolve
    })
    acme.mood.before = (step) => (step === 'finalize' ? held : undefined)
    const platform = await platformWith(t, acme, { databaseUrl: await store.url() })
    const domain = await platform.admin.create('/reserved_domains', {
      domain: 'shop.example.com',
      certificate_management_policy: { authority: 'letsencrypt', private_key_type: 'rsa' },
    })
    const begun = domain.certificate_management_status.provisioning_job
    assert.equal(begun.error_code, null)
    const path = `/reserved_domains/${domain.id}`
    const job = await until('it is being ordered', async () => {
      const shown = await platform.admin.get(path)
      const { provisioning_job } = shown.certificate_management_status
      return provisioning_job.started_at !== null && provisioning_job
    })
    assert.equal(job.error_code, null)
    assert.equal(job.retries_at, null)
    letOn()
    const done = await until('it has a certificate', async () => {
      const shown = await platform.admin.get(path)
      return shown.certificate !== null && shown.certificate_management_status.provisioning_job === null && shown
    })
    const certificate = await platform.admin.get(`/tls_certificates/${done.certificate.id}`)
    assert.equal(certificate.private_key_type, 'rsa')
    const { renews_at } = done.certificate_management_status
    assert.ok(renews_at > timestamp(Date.now()) && renews_at < certificate.not_after, renews_at)
    const refused = await platform.admin.send('DELETE', `/tls_certificates/${done.certificate.id}`)
    assert.equal(refused.status, 409)
    await platform.admin.delete(`${path}/certificate_management_policy`)
    assert.equal((await platform.admin.get(path)).certificate, null)
  })

  test('a restart orders nothing again, and keeps the account', async (t) => {
    const acme = await authorityFor(t)
    const databaseUrl = await store.url()
    const dataDir = await folder(t)
    const first = await startPlatform({ databaseUrl, dataDir, flags: { 'acme-directory': acme.directory } })
    acme.mood.nodes = [first]
    try {
      await edge(first, 'app.example.com')
      await issued(first, acme, 'app.example.com')
      assert.equal(await metric(first.metricsUrl, 'postern_acme_issued_total'), 1)
    } finally {
      await first.stop()
    }
    const again = await platformWith(t, acme, { databaseUrl, dataDir })
    await issued(again, acme, 'app.example.com')
    const backend = await again.admin.create('/edges/https', { hostports: [`new.example.com:${again.httpsPort}`] })
    assert.ok(backend.id)
    await until('the new name has its certificate', async () => {
      const { tls_certificates: all } = await again.admin.get('/tls_certificates')
      return all.length === 2
    })
    assert.deepEqual(
      acme.orders.map(({ name }) => name),
      ['app.example.com', 'new.example.com'],
    )
    assert.equal(acme.count('account'), 1)
  })
})

test('an authority inside a company: its own root, and an account with an external binding', async (t) => {
  const identity = await tlsIdentity()
  const binding = { keyId: 'kid-1', key: Buffer.from('a key that was agreed on').toString('base64url') }
  const acme = await authorityFor(t, { identity, binding })
  const caFile = join(await folder(t), 'root.pem')
  await writeFile(caFile, identity.ca)
  const platform = await platformWith(t, acme, {
    flags: { 'acme-ca': caFile, 'acme-eab-key-id': binding.keyId },
    env: { POSTERN_ACME_EAB_KEY: binding.key },
  })
  await edge(platform, 'app.example.com')
  await issued(platform, acme, 'app.example.com')
})

describe('before routing', () => {
  test('only the challenge of a name that is being ordered is answered', async (t) => {
    const acme = await authorityFor(t)
    const platform = await platformWith(t, acme)
    await edge(platform, 'app.example.com')
    await issued(platform, acme, 'app.example.com')
    const { status, headers } = await visit(
      `http://app.example.com:${platform.httpPort}`,
      { ca: '' },
      { path: '/.well-known/acme-challenge/abcdefghijklmnopqrstuvwx' },
    )
    assert.equal(status, 307)
    assert.match(String(headers.location), /^https:/)
    const socket = connectTls({
      host: '127.0.0.1',
      port: platform.httpsPort,
      servername: 'app.example.com',
      ALPNProtocols: ['acme-tls/1'],
      rejectUnauthorized: false,
    })
    const outcome = await new Promise((resolve) => {
      socket.once('secureConnect', () => resolve(socket.alpnProtocol))
      socket.once('error', (error) => resolve(error))
    })
    socket.destroy()
    assert.notEqual(outcome, 'acme-tls/1')
  })
})
