/** D105: nobody gets a name by which callers or agents reach the server, and no wildcard answers for one. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { clientKey, TestClient } from '../../src/data-plane/ssh/testing/test-gateway.ts'
import { AgentRefusal } from '../interop/agents/driver.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { ApiClient } from '../support/api-client.ts'
import { makeIdentity } from '../support/make-certificate.ts'
import { postern, type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'
import { type Recorder, recorder } from './edges/upstreams.ts'
import { ask } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

const API_KEY = 'own_names_api_key_of_the_first_admin'

const own = ['api.example.com', 'connect.tunnels.example.com', 'agents.example.com']
const flags = {
  domain: 'tunnels.example.com',
  'api-url': 'https://api.example.com/base',
  'agent-names': 'agents.example.com,192.0.2.7',
}

describe('a name of the server', () => {
  let world: World
  let member: ApiClient
  let service: Recorder
  let edge: HttpsEdge
  before(async () => {
    world = await World.start({ flags })
    ;({ api: member } = await world.platform.member())
    service = await recorder(world)
    edge = await world.httpsTo(service)
  })
  after(() => world.stop())

  test('is refused to edges and reservations of anybody, on any port and in any spelling, with the remedy', async () => {
    for (const name of own) {
      for (const api of [world.api, member]) {
        for (const path of ['/edges/https', '/edges/tls']) {
          for (const hostport of [`${name}:443`, `${name.toUpperCase()}.:${world.platform.httpsPort}`]) {
            const body = { hostports: ['fine.example.com:443', hostport] }
            const refused = await api.refused('ERR_HOSTPORT_IN_USE', 'POST', path, { body })
            assert.equal(refused.details.field, 'hostports[1]')
            assert.match(refused.msg, new RegExp(`reach this server by \`${name}\`.*--api-url`))
          }
        }
        for (const body of [{ domain: name }, { name }]) {
          assert.match(
            (await api.refused('ERR_DOMAIN_IN_USE', 'POST', '/reserved_domains', { body })).msg,
            /--agent-names/,
          )
        }
      }
      const body = { hostports: [`${edge.name}:443`, `${name}:443`] }
      await world.api.refused('ERR_HOSTPORT_IN_USE', 'PATCH', edge.path, { body })
    }
  })

  test('is refused to agents and to SSH clients', async (t) => {
    const { token } = await member.create('/credentials')
    const { agents: server, ca, sshPort } = world.platform
    const agent = await ownDriver.connect({ server, ca, authtoken: token })
    t.after(() => agent.close())
    await member.create('/ssh_credentials', { public_key: clientKey.publicLine })
    for (const name of own) {
      for (const options of [
        { url: `https://${name}` },
        { url: `http://${name}` },
        { proto: 'tls', domain: name },
      ] as const) {
        const isRefused = (error: unknown) =>
          error instanceof AgentRefusal && error.message.includes(`${name} is a name of the server itself`)
        await assert.rejects(agent.open({ addr: 1, ...options }), isRefused, JSON.stringify(options))
      }
      const client = await new TestClient(sshPort).login()
      t.after(() => client.leave())
      await client.exec('http')
      await assert.rejects(client.forward(name, 443))
    }
    const { endpoints } = await world.api.get('/endpoints')
    assert.deepEqual(
      endpoints.filter(({ hostport }: { hostport: string }) => own.some((name) => hostport.startsWith(`${name}:`))),
      [],
    )
  })

  test('can be that of a TCP edge, which only has a port', async () => {
    const { hostports } = await member.create('/edges/tcp', { hostports: [`${own[0]}:${world.tcpPort()}`] })
    assert.match(hostports[0], /^api\.example\.com:/)
  })

  test('may be covered by wildcards, of edges and of agents, which never answer for it', async (t) => {
    const { api } = await world.platform.member()
    const { token } = await api.create('/credentials', { acl: ['bind:*.tunnels.example.com'] })
    const { agents: server, ca } = world.platform
    const agent = await ownDriver.connect({ server, ca, authtoken: token })
    t.after(() => agent.close())
    await agent.open({ addr: service.port, url: 'https://*.tunnels.example.com' })
    await world.httpsEdge({
      names: ['*.example.com'],
      routes: [{ backend: await world.toAddress(service) }],
    })
    const seen = service.seen.length
    for (const host of own) {
      const { status, code } = await world.ask(edge.name, { host })
      assert.deepEqual([status, code], [404, 'ERR_ENDPOINT_OFFLINE'], host)
      // Without a certificate for the name, the handshake fails before.
      assert.equal((await world.ask(host).catch(() => ({ status: 404 }))).status, 404, host)
    }
    assert.equal(service.seen.length, seen)
    for (const host of ['other.example.com', 'x.api.example.com', 'other.tunnels.example.com'])
      assert.equal((await world.ask(host)).status, 200, host)
  })

  test('has no certificate that a member uploads or chooses, by name or wildcard; an admin may', async () => {
    const upload = async (...dnsNames: string[]) => {
      const { certificatePem, privateKeyPem } = await makeIdentity({ dnsNames })
      return { certificate_pem: certificatePem, private_key_pem: privateKeyPem }
    }
    const fine = await member.create('/tls_certificates', await upload('app.example.com'))
    for (const name of [...own, '*.example.com', '*.tunnels.example.com']) {
      const body = await upload('fine.example.com', name)
      for (const [method, path] of [
        ['POST', '/tls_certificates'],
        ['PATCH', `/tls_certificates/${fine.id}`],
      ] as const) {
        const refused = await member.refused('ERR_DOMAIN_IN_USE', method, path, { body })
        assert.match(refused.msg, /only an admin chooses a certificate that covers it/)
        assert.equal(refused.details.field, 'certificate_pem')
      }
    }
    const body = { domain: '*.example.com', certificate_id: fine.id }
    await member.refused('ERR_DOMAIN_IN_USE', 'POST', '/reserved_domains', { body })
    await member.create('/tls_certificates', await upload('*.other.example.com', 'x.api.example.com'))
    const { id } = await world.api.create('/tls_certificates', await upload(...own, '*.example.com'))
    await member.send('PATCH', `/tls_certificates/${id}`, { body: { description: 'Ours.' } })
    assert.equal((await world.api.get(`/tls_certificates/${id}`)).description, 'Ours.')
  })
})

test('one that was stored before the server had it is served on, with a warning, and the names follow the settings', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'postern-own-names-'))
  const dataDir = join(root, 'data')
  const config = join(root, 'postern.yml')
  const [name = '', , reserved = ''] = own
  const start = (settings: string): Promise<ServerProcess> => {
    writeFileSync(config, settings)
    return serve({ dataDir, flags: { config }, env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY } })
  }
  const hostports = [`${name}:443`]
  const first = await start('')
  const api = new ApiClient(first.url, API_KEY)
  const { id: backend_id } = await api.create('/backends/http_response', { body: 'served' })
  const edge = await api.create('/edges/https', { hostports })
  const body = { match_type: 'path_prefix', match: '/', backend: { backend_id } }
  await api.create(`/edges/https/${edge.id}/routes`, body)
  const { id } = await api.create('/reserved_domains', { domain: reserved })
  const { token } = await api.create('/credentials')
  await first.stop()

  const server = await start('api_url: https://api.example.com\nagent_names: agents.example.com\n')
  t.after(async () => {
    await server.stop()
    rmSync(root, { recursive: true, force: true })
  })
  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const warned = () => /^.*names of this server itself belong to edges.*$/m.exec(server.log())?.[0] ?? '{}'
  assert.deepEqual(JSON.parse(warned()).held.sort(), [`${reserved} of ${id}`, `${name} of ${edge.id}`].sort())
  const port = Number(server.https.slice(server.https.lastIndexOf(':') + 1))
  await until('it is served', async () => {
    const answer = await ask({ name, port, ca }).catch(() => undefined)
    return answer?.text === 'served'
  })
  const agent = await ownDriver.connect({ server: server.agents, ca, authtoken: token })
  t.after(() => agent.close())
  await agent.open({ addr: 1, url: `https://${reserved}` })

  const now = new ApiClient(server.url, API_KEY)
  await now.update(`/edges/https/${edge.id}`, {
    description: 'changed',
    hostports: [...hostports, 'more.example.com:443'],
  })
  await now.refused('ERR_HOSTPORT_IN_USE', 'POST', '/edges/tls', { body: { hostports: ['connect.localhost:443'] } })

  const doctor = await postern(['doctor', '--config', config, '--data-dir', dataDir, '--json'])
  const found = JSON.parse(doctor.out).filter(({ check }: { check: string }) => check === 'own names')
  assert.deepEqual(
    found
      .map(({ state, about }: { state: string; about: string }) => `${state}: ${about.replace(/.* by /, '')}`)
      .sort(),
    [`to do: ${reserved} of ${id}`, `to do: ${name} of ${edge.id}`].sort(),
  )

  const next = { hostports: ['next.example.com:443'] }
  assert.equal((await now.send('POST', '/edges/tls', { body: next })).status, 201)
  writeFileSync(config, 'api_url: https://later.example.com\n')
  server.kill('SIGHUP')
  await until('the names have followed', async () => {
    const later = { hostports: ['later.example.com:443'] }
    const { status, body } = await now.send('POST', '/edges/tls', { body: later })
    if (status === 201) await now.delete(`/edges/tls/${body.id}`)
    return status === 409
  })
  await now.delete(`/edges/https/${edge.id}`)
  assert.equal((await now.send('POST', '/edges/tls', { body: { hostports } })).status, 201)
})
