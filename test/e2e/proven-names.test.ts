/** Names outside the server's domain, which members and agents may use once a DNS record proves them. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AgentRefusal } from '../interop/agents/driver.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { startAcmeServer } from '../support/acme-server.ts'
import type { ApiClient } from '../support/api-client.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { startTestResolver, type TestResolver } from '../support/test-resolver.ts'
import { until } from '../support/until.ts'

let dns: TestResolver
let platform: Platform
let member: ApiClient
const flags = () => ({ 'verify-domains': 'on', 'dns-servers': dns.address, domain: 'tunnels.test' })

before(async () => {
  dns = await startTestResolver()
  platform = await startPlatform({ flags: flags() })
  member = (await platform.member()).api
})
after(async () => {
  await platform.stop()
  dns.stop()
})

/** The records that a refusal asks for. */
function wantedBy(msg: string): { txtName: string; txtValue: string; cname: string } {
  const [, txtName = '', txtValue = '', cname = ''] =
    /TXT record `(\S+)` to `(\S+)`(?:, or a CNAME record `\S+` to `(\S+)`)?/.exec(msg) ?? []
  return { txtName, txtValue, cname }
}

async function refused(path: string, body: object, { method = 'POST', by = member } = {}): Promise<string> {
  const { status, body: answer } = await by.send(method, path, { body })
  assert.deepEqual([status, answer.error_code], [403, 'ERR_NAME_NOT_PROVEN'], JSON.stringify(answer))
  return answer.msg
}

test('a member reserves a name once its TXT record is there, and a refusal says which one', async () => {
  const domain = 'app.shop.test'
  const { txtName, txtValue, cname } = wantedBy(await refused('/reserved_domains', { domain }))
  assert.equal(txtName, '_postern.app.shop.test')
  assert.match(txtValue, /^postern=[0-9a-f]{32}$/)
  dns.txt.set(txtName, ['another value'])
  await refused('/reserved_domains', { domain })
  dns.txt.set(txtName, ['v=spf1 -all', txtValue])
  const made = await member.create('/reserved_domains', { domain })
  assert.equal(made.cname_target, cname)
})

test('an agent ingress of a member is proven like a reserved domain, and needs no proof below the domain', async () => {
  const domain = 'agents.shop.test'
  const { txtName, txtValue } = wantedBy(await refused('/agent_ingresses', { domain }))
  assert.equal(txtName, '_postern.agents.shop.test')
  dns.txt.set(txtName, [txtValue])
  await member.create('/agent_ingresses', { domain })
  await member.create('/agent_ingresses', { domain: 'agents.tunnels.test' })
  await platform.admin.create('/agent_ingresses', { domain: 'agents.unproven.test' })
})

test('a wildcard is proven by the record of its domain, and never by a CNAME', async () => {
  const { txtName, txtValue, cname } = wantedBy(await refused('/reserved_domains', { domain: '*.wide.test' }))
  assert.deepEqual([txtName, cname], ['_postern.wide.test', ''])
  dns.txt.set(txtName, [txtValue])
  assert.equal((await member.create('/reserved_domains', { domain: '*.wide.test' })).cname_target, null)
})

test('an edge of a member gets a name by its CNAME record, and only new names are looked up', async () => {
  const port = platform.httpsPort
  const { cname } = wantedBy(await refused('/edges/https', { hostports: [`www.alias.test:${port}`] }))
  dns.cname.set('www.alias.test', cname.toUpperCase())
  const inside = `x.tunnels.test:${port}`
  const { id } = await member.create('/edges/https', { hostports: [`www.alias.test:${port}`, inside] })
  dns.cname.clear()
  dns.asked.length = 0
  await member.update(`/edges/https/${id}`, { hostports: [`www.alias.test:${port}`], description: 'kept' })
  assert.deepEqual(dns.asked, [], 'a name that it has is not looked up again')
  const msg = await refused(`/edges/https/${id}`, { hostports: [`other.alias.test:${port}`] }, { method: 'PATCH' })
  assert.match(msg, /_postern\.other\.alias\.test/)
})

test('an admin needs no record', async () => {
  dns.asked.length = 0
  await platform.admin.create('/reserved_domains', { domain: 'free.test' })
  assert.deepEqual(dns.asked, [])
})

test('a name is refused while the DNS does not answer', async () => {
  dns.mood = 'fails'
  const msg = await refused('/reserved_domains', { domain: 'unknown.test' })
  assert.match(msg, /cannot be looked up at the moment \(ESERVFAIL\)/)
  dns.mood = 'answers'
})

test('an agent may only bind names that are inside the domain, reserved or proven', async (t) => {
  const { token } = await platform.admin.create('/credentials', {})
  const agent = await ownDriver.connect({ server: platform.agents, ca: platform.ca, authtoken: token })
  t.after(() => agent.close())
  await agent.open({ addr: 1, url: 'https://mine.tunnels.test' })
  await agent.open({ addr: 1, url: 'https://free.test' })
  const open = () => agent.open({ addr: 1, url: 'https://agent.test' })
  const error = await open().then(
    () => assert.fail('it was opened'),
    (each: unknown) => each,
  )
  assert.ok(error instanceof AgentRefusal)
  const { txtName, txtValue } = wantedBy(error.message)
  assert.equal(txtName, '_postern.agent.test')
  dns.txt.set(txtName, [txtValue])
  await open()
})

test('a lost proof is reported and stops renewals, until an admin reserves the name', async (t) => {
  const acme = await startAcmeServer()
  t.after(() => acme.stop())
  const orderTimes = { lookMs: 100 }
  const { admin, ...own } = await startPlatform({ flags: { ...flags(), 'acme-directory': acme.directory }, orderTimes })
  t.after(() => own.stop())
  acme.mood.nodes = [own]
  const { api } = await own.member()
  const domain = 'lost.shop.test'
  const wanted = { domain, certificate_management_policy: {} }
  const { txtName, txtValue } = wantedBy(await refused('/reserved_domains', wanted, { by: api }))
  dns.txt.set(txtName, [txtValue])
  const before = Date.now() - 1000
  const made = await api.create('/reserved_domains', wanted)
  const path = `/reserved_domains/${made.id}`
  assert.ok(Date.parse(made.proven_at) >= before && Date.parse(made.proven_at) <= Date.now(), made.proven_at)
  const { certificate } = await until('it has a certificate', async () => {
    const shown = await api.get(path)
    return shown.certificate !== null && shown.certificate_management_status.provisioning_job === null && shown
  })
  const renew = async (id: string) => {
    assert.equal((await api.send('POST', `/tls_certificates/${id}/renew`)).status, 204)
  }

  dns.txt.delete(txtName)
  await renew(certificate.id)
  const lost = await until('it is reported', async () => {
    const shown = await api.get(path)
    return shown.certificate_management_status.provisioning_job?.error_code === 'ERR_NAME_NOT_PROVEN' && shown
  })
  assert.equal(lost.proven_at, null)
  assert.deepEqual(lost.certificate, certificate, 'the existing certificate is still served')
  const job = lost.certificate_management_status.provisioning_job
  assert.equal(wantedBy(job.msg).txtValue, txtValue)
  assert.ok(job.retries_at !== null && job.started_at !== null)
  const ordered = () => acme.orders.filter(({ name }) => name === domain).length
  assert.equal(ordered(), 1)

  // An admin who changes something else, or is refused, does not vouch for the name.
  await admin.update(path, { description: 'seen' })
  await admin.refused('ERR_DOMAIN_IN_USE', 'POST', '/reserved_domains', { body: { domain } })
  await renew(certificate.id)
  const refusals = () => own.log.filter((line) => line.includes('certificate not ordered') && line.includes(domain))
  await until('a second order was refused', () => refusals().length === 2)
  assert.equal(ordered(), 1)

  await admin.delete(path)
  const { id } = await admin.create('/reserved_domains', wanted)
  await until('the admin gets another certificate', async () => {
    const { certificate_management_status: status } = await admin.get(`/reserved_domains/${id}`)
    return ordered() === 2 && status.provisioning_job === null
  })
  assert.equal((await admin.get(`/reserved_domains/${id}`)).proven_at, null)
})
