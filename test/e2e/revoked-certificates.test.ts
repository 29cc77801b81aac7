/** Certificates that must be replaced early: revoked ones, and those that somebody wants replaced. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type AcmeServer, startAcmeServer } from '../support/acme-server.ts'
import type { Json } from '../support/api-client.ts'
import { makeIdentity } from '../support/make-certificate.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000

let acme: AcmeServer
let platform: Platform
/** Names whose certificates are revoked: the authority says that their renewal is overdue. */
const revoked = new Set<string>()

before(async () => {
  acme = await startAcmeServer()
  acme.mood.askAgainS = 0
  acme.mood.renewalWindow = (notBefore, _, name) => {
    const start = revoked.has(name) ? notBefore - 2 * HOUR_MS : Date.now() + 1000 * HOUR_MS
    return { start, end: start + HOUR_MS }
  }
  const orderTimes = { lookMs: 100, leastAskMs: 200, firstPauseMs: HOUR_MS }
  platform = await startPlatform({ flags: { 'acme-directory': acme.directory }, orderTimes })
  acme.mood.nodes = [platform]
})
after(async () => {
  await platform?.stop()
  await acme?.stop()
})

/** The serial number of the certificate that visitors get; rejects when they do not trust it. */
const shown = (name: string) =>
  new Promise<string>((resolve, reject) => {
    const to = { host: '127.0.0.1', port: platform.httpsPort, servername: name, ca: acme.ca }
    const socket = connectTls(to, () => {
      resolve(socket.getPeerX509Certificate()?.serialNumber ?? '')
      socket.destroy()
    })
    socket.on('error', reject)
  })

/** Creates a name, and resolves once visitors get its certificate. */
async function served(domain: string): Promise<{ domain: Json; serial: string }> {
  const { id } = await platform.admin.create('/reserved_domains', { domain, certificate_management_policy: {} })
  await platform.admin.create('/edges/https', { hostports: [`${domain}:443`] })
  const serial = await until('visitors see its certificate', () => shown(domain).catch(() => undefined))
  const made = await platform.admin.get(`/reserved_domains/${id}`)
  assert.notEqual(made.certificate, null)
  return { domain: made, serial }
}

/** Resolves with the serial number of the next certificate; no visitor may fail until then. */
const next = (name: string, serial: string) =>
  until('visitors see another certificate', async () => {
    const now = await shown(name)
    return now !== serial && now
  })

const ordersFor = (name: string) => acme.orders.filter((each) => each.name === name)

test('a certificate that the authority revoked is replaced at once, and no visitor fails', async () => {
  const { domain, serial } = await served('revoked.example.com')
  revoked.add('revoked.example.com')
  await next('revoked.example.com', serial)
  revoked.delete('revoked.example.com')
  assert.equal(ordersFor('revoked.example.com').length, 2)
  assert.match(ordersFor('revoked.example.com')[1]?.replaces ?? '', /\./)
  const after = await platform.admin.get(`/reserved_domains/${domain.id}`)
  assert.deepEqual(after.certificate, domain.certificate, 'it replaces the former one')
})

test('an authority that calls all its certificates overdue is followed once, and then with growing pauses', async () => {
  revoked.add('always.example.com')
  const { domain } = await served('always.example.com')
  const later = await until('the second one is to be renewed later', async () => {
    const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${domain.id}`)
    const at = Date.parse(status.renews_at ?? '')
    // The pause is an hour at most; before the authority is asked again the next renewal is weeks away.
    const isLater = at > Date.now() && at < Date.now() + HOUR_MS
    return ordersFor('always.example.com').length === 2 && isLater && status
  })
  assert.equal(later.provisioning_job, null)
  const asked = acme.count('renewalInfo', 'always.example.com')
  await until('it was asked again', () => acme.count('renewalInfo', 'always.example.com') > asked + 3)
  assert.equal(ordersFor('always.example.com').length, 2)
})

test('anybody who may change an issued certificate can have it replaced now', async () => {
  const { domain, serial } = await served('leaked.example.com')
  const path = `/tls_certificates/${domain.certificate.id}`
  const { api } = await platform.member()
  const answer = await api.send('POST', `${path}/renew`)
  assert.deepEqual([answer.status, answer.text], [204, ''])
  await next('leaked.example.com', serial)
  const { renews_at } = (await platform.admin.get(`/reserved_domains/${domain.id}`)).certificate_management_status
  assert.ok(Date.parse(renews_at) > Date.now(), 'once')
  assert.equal(ordersFor('leaked.example.com').length, 2)

  const { certificatePem, privateKeyPem } = await makeIdentity({ dnsNames: ['own.example.com'] })
  const body = { certificate_pem: certificatePem, private_key_pem: privateKeyPem }
  const uploaded = await platform.admin.create('/tls_certificates', body)
  const refused = await api.refused('ERR_CERTIFICATE_NOT_RENEWABLE', 'POST', `/tls_certificates/${uploaded.id}/renew`)
  assert.match(refused.msg, /uploaded/)
})
