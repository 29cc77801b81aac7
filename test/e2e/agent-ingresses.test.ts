/** Further names by which agents reach the server: the certificate shown there, from creation to deletion. */
import assert from 'node:assert/strict'
import dns from 'node:dns'
import { once } from 'node:events'
import { after, before, mock, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { AgentRefusal } from '../interop/agents/driver.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { type AcmeServer, type AcmeStep, startAcmeServer } from '../support/acme-server.ts'
import type { Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** Agents look names up; those of the tests resolve to this machine. */
function resolveHere(): void {
  const lookUp = dns.lookup.bind(dns) as (host: string, ...rest: unknown[]) => void
  const here = (host: string, ...rest: unknown[]) => lookUp(host.endsWith('.example.com') ? '127.0.0.1' : host, ...rest)
  mock.method(dns, 'lookup', here as typeof dns.lookup)
}

eachStore((store) => {
  let acme: AcmeServer
  let platform: Platform
  let port: number
  /** By name, what the authority waits for before it answers `finalize`. */
  const held = new Map<string, Promise<void>>()

  before(async () => {
    resolveHere()
    acme = await startAcmeServer()
    acme.mood.before = (step: AcmeStep, name: string) => (step === 'finalize' ? held.get(name) : undefined)
    const flags = { 'acme-directory': acme.directory, domain: 'tunnels.example.com' }
    platform = await startPlatform({ databaseUrl: await store.url(), flags })
    acme.mood.nodes = [platform]
    port = Number(platform.agents.slice(platform.agents.lastIndexOf(':') + 1))
  })
  after(async () => {
    await platform.stop()
    await acme.stop()
    mock.restoreAll()
  })

  /** Whether an agent that trusts `ca` alone accepts the server under a name. */
  async function isTrusted(servername: string, ca: string): Promise<boolean> {
    const socket = connectTls({ host: '127.0.0.1', port, servername, ca })
    const outcomes = [once(socket, 'secureConnect').then(() => true), once(socket, 'close').then(() => false)]
    const isShown = await Promise.race(outcomes).catch(() => false)
    socket.destroy()
    return isShown
  }

  const agentAt = (name: string, ca: string) =>
    ownDriver.connect({ server: `${name}:${port}`, ca, authtoken: platform.authtoken })

  const ordersOf = (name: string) => acme.orders.filter((order) => order.name === name).length

  const shown = (id: string): Promise<Json> => platform.admin.get(`/agent_ingresses/${id}`)

  const issued = (id: string) =>
    until('it has a certificate', async () => {
      const { certificate_management_status: status } = await shown(id)
      return status.provisioning_job === null && Date.parse(status.renews_at) > Date.now()
    })

  test('an ingress gets a certificate, agents connect by its name, and no longer once it is deleted', async () => {
    const domain = 'agents.example.com'
    assert.ok(!(await isTrusted(domain, platform.ca)), 'the name is not in use yet')
    const hold = Promise.withResolvers<void>()
    held.set(domain, hold.promise)
    const made = await platform.admin.create('/agent_ingresses', { domain, certificate_management_policy: {} })
    const path = `/agent_ingresses/${made.id}`
    assert.deepEqual(made.certificate_management_status.provisioning_job.error_code, null)
    await until('our own certificate is shown until there is another', () => isTrusted(domain, platform.ca))
    await until('it is being ordered', async () => {
      const { provisioning_job: job } = (await shown(made.id)).certificate_management_status
      return job?.started_at !== null && job?.msg === 'A certificate is being ordered.'
    })
    hold.resolve()
    await issued(made.id)
    await until('its certificate is shown', () => isTrusted(domain, acme.ca))
    assert.ok(!(await isTrusted(domain, platform.ca)))
    for (const name of ['tunnels.example.com', 'connect.tunnels.example.com']) {
      assert.ok(await isTrusted(name, platform.ca), `${name} still shows our own certificate`)
    }

    const agent = await agentAt(domain, acme.ca)
    const { tunnel_sessions: sessions } = await platform.admin.get('/tunnel_sessions')
    assert.equal(sessions.length, 1)
    await assert.rejects(
      agent.open({ addr: 1, domain }),
      (error) => error instanceof AgentRefusal && error.message.includes(`belongs to the agent ingress ${made.id}`),
    )
    const [certificate] = (await platform.admin.get('/tls_certificates')).tls_certificates
    await platform.admin.refused('ERR_STILL_REFERENCED', 'DELETE', `/tls_certificates/${certificate.id}`)

    await platform.admin.delete(`${path}/certificate_management_policy`)
    await until('our own certificate is shown again', () => isTrusted(domain, platform.ca))
    await platform.admin.update(path, { certificate_management_policy: {} })
    await issued(made.id)
    await until('the certificate from before is shown again', () => isTrusted(domain, acme.ca))
    assert.equal(ordersOf(domain), 1)

    await platform.admin.delete(path)
    await until('its certificate is no longer shown', async () => !(await isTrusted(domain, acme.ca)))
    assert.ok(!(await isTrusted(domain, platform.ca)))
    await assert.rejects(agentAt(domain, acme.ca), 'no agent can connect by it')
    // Sessions that are online stay.
    const { tunnel_sessions: still } = await platform.admin.get('/tunnel_sessions')
    assert.deepEqual(
      still.map(({ id }: Json) => id),
      [sessions[0].id],
    )
    await agent.close()
  })

  test('one that is deleted during its order does no harm, and the next of its name uses that certificate', async () => {
    const domain = 'gone.example.com'
    const hold = Promise.withResolvers<void>()
    held.set(domain, hold.promise)
    const body = { domain, certificate_management_policy: { private_key_type: 'rsa' } }
    const first = await platform.admin.create('/agent_ingresses', body)
    await until('the authority is at work', () => acme.count('finalize', domain) > 0)
    await platform.admin.delete(`/agent_ingresses/${first.id}`)
    hold.resolve()
    await until('its certificate is issued nevertheless', async () => {
      const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
      return all.some((each: Json) => each.subject_alternative_names.dns_names.includes(domain))
    })
    assert.ok(!(await isTrusted(domain, acme.ca)))
    const { id } = await platform.admin.create('/agent_ingresses', body)
    await issued(id)
    await until('it is shown', () => isTrusted(domain, acme.ca))
    assert.equal(ordersOf(domain), 1)
  })

  test('a name that an agent serves is refused', async () => {
    const domain = 'served.example.com'
    const agent = await agentAt('connect.tunnels.example.com', platform.ca)
    const tunnel = await agent.open({ addr: 1, domain })
    const refused = await platform.admin.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'POST', '/agent_ingresses', {
      body: { domain },
    })
    assert.equal(refused.details.field, 'domain')
    await tunnel.close()
    await agent.close()
    await until('the name is free', async () => {
      const { status } = await platform.admin.send('POST', '/agent_ingresses', { body: { domain } })
      return status === 201
    })
  })
})
