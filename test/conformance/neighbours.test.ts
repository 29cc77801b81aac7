/** Resources beyond the contract: TLS certificates, names that are reserved or for agents, IP restrictions (D27, D28). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { tcpRange } from '../support/free-port.ts'
import { makeIdentity } from '../support/make-certificate.ts'
import { startPlatform } from '../support/platform.ts'
import { eachTarget, unique } from './target.ts'
import { tlsPair } from './tls-pair.ts'
import { unknownId, World } from './world.ts'

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  describe('a TLS certificate', () => {
    test('shows its contents, and nothing of its key', async () => {
      const root = await makeIdentity({ name: 'CN=Root, O=Trust', isCa: true })
      const leaf = await makeIdentity({
        name: 'C=DE, ST=Berlin, L=Mitte, O=Example, OU=Web, CN=app.example.com',
        issuer: root,
        key: 'rsa2048',
        dnsNames: ['app.example.com', '*.example.com'],
        ips: ['192.0.2.9', '2001:db8::9'],
        serialNumber: '00c0ffee',
      })
      const certificate_pem = leaf.certificatePem + root.certificatePem
      const { path, body } = await world.make('tls_certificate', {
        certificate_pem,
        private_key_pem: leaf.privateKeyPem,
      })
      const { id, uri, created_at } = body
      assert.deepEqual(body, {
        id,
        uri,
        created_at,
        description: '',
        metadata: '',
        certificate_pem,
        subject_common_name: 'app.example.com',
        subject_organization: 'Example',
        subject_organizational_unit: 'Web',
        subject_locality: 'Mitte',
        subject_province: 'Berlin',
        subject_country: 'DE',
        subject_alternative_names: {
          dns_names: ['app.example.com', '*.example.com'],
          ips: ['192.0.2.9', '2001:db8::9'],
        },
        issued_at: null,
        // Expired certificates are accepted.
        not_before: '2020-05-01T16:27:59Z',
        not_after: '2021-05-01T16:27:59Z',
        key_usages: [],
        extended_key_usages: [],
        private_key_type: 'rsa',
        issuer_common_name: 'Root',
        serial_number: 'c0ffee',
      })
      const updated = await target.api.update(path, { description: 'new' })
      assert.deepEqual(updated, { ...body, description: 'new' })
      for (const text of [body, updated, await target.api.get('/tls_certificates')].map((each) =>
        JSON.stringify(each),
      )) {
        assert.ok(!text.includes('PRIVATE KEY') && !text.includes('private_key_pem'), text)
      }
    })

    test('is renewed in place, with its key or with a new one', async () => {
      const { path, body } = await world.make('tls_certificate', { description: 'mine' })
      const next = await makeIdentity({ name: 'CN=next.example.com', key: 'rsa2048', dnsNames: ['next.example.com'] })
      const pair = { certificate_pem: next.certificatePem, private_key_pem: next.privateKeyPem }
      const renewed = await target.api.update(path, pair)
      assert.deepEqual(
        [renewed.id, renewed.created_at, renewed.description, renewed.certificate_pem, renewed.private_key_type],
        [body.id, body.created_at, 'mine', next.certificatePem, 'rsa'],
      )
      assert.deepEqual(renewed.subject_alternative_names, { dns_names: ['next.example.com'], ips: [] })
      assert.deepEqual(await target.api.get(path), renewed)
      const chained = { certificate_pem: `${next.certificatePem}\n` }
      assert.equal((await target.api.update(path, chained)).certificate_pem, chained.certificate_pem, 'the key stays')
    })

    test('that does not fit its key does not replace the one before', async () => {
      const { path, body } = await world.make('tls_certificate')
      const other = await makeIdentity({ name: 'CN=Other' })
      const cases: [string, object][] = [
        ['ERR_PRIVATE_KEY_MISMATCH', { certificate_pem: other.certificatePem }],
        ['ERR_PRIVATE_KEY_MISMATCH', { private_key_pem: other.privateKeyPem }],
        ['ERR_BAD_TLS_CERTIFICATE', { certificate_pem: 'x', private_key_pem: other.privateKeyPem }],
        ['ERR_BAD_PRIVATE_KEY', { certificate_pem: other.certificatePem, private_key_pem: 'x' }],
      ]
      for (const [code, given] of cases) await target.api.refused(code, 'PATCH', path, { body: given })
      assert.deepEqual(await target.api.get(path), body)
      await target.api.refused('ERR_NOT_FOUND', 'PATCH', `${path.slice(0, -4)}aaaa`, { body: tlsPair })
    })

    test('is one of those that were sent concurrently, never a mix of two', async () => {
      const { path } = await world.make('tls_certificate')
      const names = ['one', 'two', 'three', 'four', 'five'].map((each) => `${each}.example.com`)
      const pairs = await Promise.all(names.map((each) => makeIdentity({ name: `CN=${each}`, dnsNames: [each] })))
      await Promise.all(
        pairs.map(({ certificatePem: certificate_pem, privateKeyPem: private_key_pem }) =>
          target.api.update(path, { certificate_pem, private_key_pem }),
        ),
      )
      const kept = await target.api.get(path)
      const i = pairs.findIndex(({ certificatePem }) => certificatePem === kept.certificate_pem)
      assert.deepEqual(kept.subject_alternative_names.dns_names, [names[i]])
      // The matching key was kept, so the certificate alone is accepted again.
      await target.api.update(path, { certificate_pem: `${kept.certificate_pem}\n` })
    })

    test('needs both certificate and key', async () => {
      for (const name of ['certificate_pem', 'private_key_pem'] as const) {
        const { [name]: _, ...rest } = tlsPair
        const { msg } = await target.api.refused('ERR_FIELD_REQUIRED', 'POST', '/tls_certificates', { body: rest })
        assert.ok(msg.includes(`\`${name}\``), msg)
      }
    })

    test('must match its key and its chain, and no refusal quotes the key', async () => {
      const other = await makeIdentity({ name: 'CN=Other' })
      const { certificate_pem, private_key_pem } = tlsPair
      const secret = private_key_pem.split('\n')[1]?.slice(4, 24) ?? ''
      const cases: [string, object, RegExp][] = [
        ['ERR_PRIVATE_KEY_MISMATCH', { private_key_pem: other.privateKeyPem }, /`private_key_pem`/],
        ['ERR_BAD_CERTIFICATE_CHAIN', { certificate_pem: certificate_pem + other.certificatePem }, /`certificate_pem`/],
        ['ERR_BAD_TLS_CERTIFICATE', { certificate_pem: 'x' }, /`certificate_pem`/],
        ['ERR_BAD_TLS_CERTIFICATE', { certificate_pem: certificate_pem + private_key_pem }, /`private_key_pem`/],
        ['ERR_BAD_PRIVATE_KEY', { private_key_pem: private_key_pem.slice(0, 90) }, /`private_key_pem`/],
        ['ERR_BAD_PRIVATE_KEY', { private_key_pem: certificate_pem }, /`private_key_pem`/],
        ['ERR_FIELD_TOO_LONG', { certificate_pem: certificate_pem.padEnd(64 * 1024 + 1) }, /`certificate_pem`.*65536/],
        ['ERR_FIELD_TOO_LONG', { private_key_pem: private_key_pem.padEnd(64 * 1024 + 1) }, /`private_key_pem`/],
      ]
      for (const [code, changed, message] of cases) {
        const answer = await target.api.refused(code, 'POST', '/tls_certificates', { body: { ...tlsPair, ...changed } })
        assert.equal(answer.status_code, 400)
        assert.match(answer.msg, message)
        assert.ok(!JSON.stringify(answer).includes(secret))
      }
      assert.equal(
        (await world.make('tls_certificate', { certificate_pem: certificate_pem.padEnd(64 * 1024) })).body.issued_at,
        null,
      )
    })

    const { platform } = target
    if (platform) {
      test('leaves nothing of its key in the log', async () => {
        const [, secret = ''] = tlsPair.private_key_pem.split('\n')
        await world.make('tls_certificate')
        await target.api.refused('ERR_BAD_PRIVATE_KEY', 'POST', '/tls_certificates', {
          body: { ...tlsPair, private_key_pem: tlsPair.private_key_pem.slice(0, -60) },
        })
        assert.ok(!platform().log.join('').includes(secret.slice(4, 24)))
      })
    }
  })

  describe('a reserved address', () => {
    test('gets a free port of the server, a different one each time', async () => {
      const addresses = await Promise.all(Array.from({ length: 5 }, () => world.make('reserved_addr')))
      const ports = addresses.map(({ body }) => Number(/^tcp\.[a-z.-]+:(\d+)$/.exec(body.addr)?.[1]))
      for (const port of ports) assert.ok(port >= 20_000 && port <= 20_999, String(port))
      assert.equal(new Set(ports).size, ports.length)
      for (const { path, body } of addresses) assert.deepEqual(await target.api.get(path), body)
    })

    test('can be a hostport of a TCP edge, like any other address (D27)', async () => {
      const { path, body } = await world.make('reserved_addr')
      const edge = await world.make('tcp_edge', { hostports: [body.addr] })
      assert.deepEqual(edge.body.hostports, [body.addr])
      await target.api.delete(path)
      assert.deepEqual((await target.api.get(edge.path)).hostports, [body.addr])
    })

    test('keeps its region and address', async () => {
      const { path, body } = await world.make('reserved_addr')
      assert.equal(body.region, 'local')
      assert.equal((await world.make('reserved_addr', { region: 'eu' })).body.region, 'eu')
      const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'POST', '/reserved_addrs', {
        body: { region: 'mars' },
      })
      assert.match(msg, /`region`.*`local`/)
      for (const name of ['region', 'addr', 'port']) {
        await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { [name]: 'eu' } })
      }
      assert.deepEqual(await target.api.update(path, { description: 'x' }), { ...body, description: 'x' })
    })
  })

  describe('a reserved domain', () => {
    const name = () => `${unique('domain')}.example.com`

    test('is unique, however it is spelled, and shown as sent but in lower case', async () => {
      const domain = name()
      const { path, body } = await world.make('reserved_domain', { domain: domain.toUpperCase() })
      assert.deepEqual(
        [body.domain, body.region, body.certificate, body.certificate_management_policy],
        [domain, 'local', null, null],
      )
      for (const again of [{ domain }, { domain: `${domain}.` }, { name: domain }, { domain, region: 'eu' }]) {
        const { status_code } = await target.api.refused('ERR_DOMAIN_IN_USE', 'POST', '/reserved_domains', {
          body: again,
        })
        assert.equal(status_code, 409)
      }
      await target.api.delete(path)
      await world.make('reserved_domain', { domain })
    })

    test('takes its name as `domain` or as `name`, but not as both or neither', async () => {
      const called = name()
      const { domain, ...rest } = await target.api.create('/reserved_domains', { name: called })
      assert.equal(domain, called)
      assert.ok(!('name' in rest))
      for (const [at, other] of [
        ['name', 'domain'],
        ['domain', 'name'],
      ]) {
        const one = name()
        const made = await target.api.create('/reserved_domains', { [`${at}`]: one, [`${other}`]: '' })
        assert.equal(made.domain, one, `an empty ${other} beside a ${at}`)
      }
      await target.api.refused('ERR_BAD_DOMAIN', 'POST', '/reserved_domains', { body: { domain: '', name: '' } })
      await target.api.refused('ERR_FIELD_REQUIRED', 'POST', '/reserved_domains', { body: {} })
      const both = { domain: name(), name: name() }
      await target.api.refused('ERR_INVALID_VALUE', 'POST', '/reserved_domains', { body: both })
    })

    test('is a name, which may begin with a wildcard', async () => {
      for (const domain of [name(), `*.${name()}`, `${unique('bücher')}.example.com`]) {
        assert.equal((await world.make('reserved_domain', { domain })).body.domain, domain)
      }
      for (const domain of [
        '',
        'a b',
        'a..b',
        '192.0.2.1',
        'x.example.com:443',
        'https://x.example.com',
        'a.*.com',
        '-a.b',
      ]) {
        const { msg } = await target.api.refused('ERR_BAD_DOMAIN', 'POST', '/reserved_domains', { body: { domain } })
        assert.match(msg, /`domain`/)
      }
    })

    test('keeps its name and region', async () => {
      const { path } = await world.make('reserved_domain')
      for (const field of ['domain', 'name', 'region']) {
        await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { [field]: 'x.example.com' } })
      }
    })

    test('shows and protects its certificate, which can be cleared', async () => {
      const certificate = await world.make('tls_certificate')
      const { path, body } = await world.make('reserved_domain', { certificate_id: certificate.id })
      assert.deepEqual(body.certificate, certificate.ref)
      assert.ok(!('certificate_id' in body))
      const { msg } = await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', certificate.path)
      assert.ok(msg.includes(body.id), msg)
      assert.deepEqual((await target.api.update(path, { description: 'x' })).certificate, certificate.ref)
      await target.api.delete(`${path}/certificate`)
      assert.equal((await target.api.get(path)).certificate, null)
      await target.api.delete(`${path}/certificate`)
      // The empty string clears too (D10).
      await target.api.update(path, { certificate_id: certificate.id })
      assert.equal((await target.api.update(path, { certificate_id: '' })).certificate, null)
      await target.api.delete(certificate.path)
    })

    test('names only TLS certificates that exist', async () => {
      const { path } = await world.make('reserved_domain')
      for (const id of [unknownId('cert_'), (await world.shared('certificate_authority')).id, 'x']) {
        const body = { certificate_id: id }
        const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', 'PATCH', path, { body })
        assert.ok(msg.includes('`certificate_id`') && msg.includes(id), msg)
        await target.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', '/reserved_domains', {
          body: { domain: name(), ...body },
        })
      }
    })

    test('has a certificate or a policy for one, never both', async () => {
      const { id, ref } = await world.make('tls_certificate')
      const certificate_management_policy = { authority: 'letsencrypt', private_key_type: 'rsa' }
      const both = { certificate_id: id, certificate_management_policy }
      await target.api.refused('ERR_CERTIFICATE_OR_POLICY', 'POST', '/reserved_domains', {
        body: { domain: name(), ...both },
      })
      const { path, body } = await world.make('reserved_domain', { certificate_management_policy: {} })
      assert.deepEqual(body.certificate_management_policy, { authority: 'letsencrypt', private_key_type: 'ecdsa' })
      // This server orders no certificates, and the status says so.
      const { renews_at, provisioning_job: job } = body.certificate_management_status
      assert.deepEqual([renews_at, job.error_code, job.retries_at], [null, 'ERR_CERTIFICATES_NOT_MANAGED', null])
      assert.match(job.msg, /does not order certificates.*`--acme-directory`/)
      await target.api.refused('ERR_CERTIFICATE_OR_POLICY', 'PATCH', path, { body: { certificate_id: id } })
      assert.deepEqual(await target.api.get(path), body)
      await target.api.delete(`${path}/certificate_management_policy`)
      const changed = await target.api.update(path, { certificate_id: id })
      assert.deepEqual(
        [changed.certificate, changed.certificate_management_policy, changed.certificate_management_status],
        [ref, null, null],
      )
      // Both in one update, so that the name always has one of the two.
      const back = await target.api.update(path, { certificate_id: '', certificate_management_policy })
      assert.deepEqual([back.certificate, back.certificate_management_policy], [null, certificate_management_policy])
      for (const policy of [{ authority: 'nobody' }, { private_key_type: 'ed25519' }, { x: 1 }]) {
        const answer = await target.api.send('PATCH', path, { body: { certificate_management_policy: policy } })
        assert.equal(answer.status, 400, answer.text)
      }
    })

    test('that does not exist has nothing to clear', async () => {
      for (const field of ['certificate', 'certificate_management_policy']) {
        await target.api.refused('ERR_NOT_FOUND', 'DELETE', `/reserved_domains/${unknownId('rd_')}/${field}`)
      }
    })
  })

  describe('an agent ingress', () => {
    const name = () => `${unique('connect')}.example.com`
    const refused = async (body: object, field = 'domain') => {
      const { status_code, details } = await target.api.refused('ERR_DOMAIN_IN_USE', 'POST', '/agent_ingresses', {
        body,
      })
      assert.deepEqual([status_code, details.field], [409, field])
    }

    test('shows its name as sent but in lower case, and the name for agents to use', async () => {
      const domain = name()
      const { path, body } = await world.make('agent_ingress', { domain: `${domain.toUpperCase()}.` })
      assert.deepEqual([body.domain, body.region_domains, body.ns_targets], [`${domain}.`, [domain], []])
      assert.deepEqual([body.certificate_management_policy, body.certificate_management_status], [null, null])
      for (const again of [domain, `${domain}.`, domain.toUpperCase()]) await refused({ domain: again })
      await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { domain: name() } })
      await target.api.delete(path)
      await world.make('agent_ingress', { domain })
    })

    test('never shares its name with an edge or a reserved domain', async () => {
      const [ofEdge, ofDomain, ofAgents] = [name(), name(), name()]
      await world.make('https_edge', { hostports: [`${ofEdge}:443`] })
      await world.make('reserved_domain', { domain: ofDomain })
      for (const domain of [ofEdge, ofDomain]) await refused({ domain })
      await world.make('agent_ingress', { domain: ofAgents })
      for (const kind of ['https', 'tls']) {
        const body = { hostports: [`${ofAgents}:443`] }
        const { details } = await target.api.refused('ERR_HOSTPORT_IN_USE', 'POST', `/edges/${kind}`, { body })
        assert.equal(details.field, 'hostports[0]')
      }
      await target.api.refused('ERR_DOMAIN_IN_USE', 'POST', '/reserved_domains', { body: { domain: ofAgents } })
      // A wildcard above it is a different name.
      await world.make('reserved_domain', { domain: `*.${ofAgents}` })
    })

    test('is one name, not an address or wildcard', async () => {
      const long = `${'a'.repeat(63)}.`.repeat(4)
      for (const domain of [
        '',
        '.',
        'a b',
        'a..b',
        '192.0.2.1',
        'x.example.com:443',
        'https://x.example.com',
        '-a.b',
        long,
      ]) {
        const { msg } = await target.api.refused('ERR_BAD_DOMAIN', 'POST', '/agent_ingresses', { body: { domain } })
        assert.match(msg, /`domain`/)
      }
      const wildcard = await target.api.refused('ERR_BAD_DOMAIN', 'POST', '/agent_ingresses', {
        body: { domain: `*.${name()}` },
      })
      assert.match(wildcard.msg, /`domain` cannot be a wildcard/)
      await target.api.refused('ERR_FIELD_REQUIRED', 'POST', '/agent_ingresses', { body: {} })
      for (const domain of [7, null, ['x.example.com'], { name: 'x' }, 'x'.repeat(301), 'x\u0000.example.com']) {
        assert.equal((await target.api.send('POST', '/agent_ingresses', { body: { domain } })).status, 400)
      }
    })

    test('requests a certificate through its policy, which can be changed and cleared', async () => {
      const { path, body } = await world.make('agent_ingress', { certificate_management_policy: {} })
      assert.deepEqual(body.certificate_management_policy, { authority: 'letsencrypt', private_key_type: 'ecdsa' })
      // This server orders no certificates, and the status says so.
      const { renews_at, provisioning_job: job } = body.certificate_management_status
      assert.deepEqual([renews_at, job.error_code], [null, 'ERR_CERTIFICATES_NOT_MANAGED'])
      const changed = { certificate_management_policy: { authority: 'letsencrypt', private_key_type: 'rsa' } }
      assert.deepEqual(await target.api.update(path, changed), { ...body, ...changed })
      for (const policy of [{ authority: 'nobody' }, { private_key_type: 'ed25519' }, { x: 1 }, 'x', []]) {
        const answer = await target.api.send('PATCH', path, { body: { certificate_management_policy: policy } })
        assert.equal(answer.status, 400, answer.text)
      }
      for (let twice = 0; twice < 2; twice++) await target.api.delete(`${path}/certificate_management_policy`)
      const { certificate_management_policy: policy, certificate_management_status: status } =
        await target.api.get(path)
      assert.deepEqual([policy, status], [null, null])
      const unknown = `/agent_ingresses/${unknownId('agin_')}/certificate_management_policy`
      await target.api.refused('ERR_NOT_FOUND', 'DELETE', unknown)
    })

    const { platform } = target
    if (platform) {
      test('cannot take a name of the server itself, or one that another member has', async () => {
        for (const domain of ['localhost', 'connect.localhost', 'CONNECT.localhost.']) await refused({ domain })
        const [one, other] = [await platform().member(), await platform().member()]
        const domain = name()
        const { id } = await one.api.create('/agent_ingresses', { domain })
        await other.api.refused('ERR_DOMAIN_IN_USE', 'POST', '/agent_ingresses', { body: { domain } })
        // Like all names of the account, any member may see and change it (D24).
        assert.equal((await other.api.get(`/agent_ingresses/${id}`)).domain, domain)
      })
    }
  })

  describe('an IP restriction', () => {
    test('exists once for each type', async () => {
      const { path, body } = await world.make('ip_restriction', { type: 'agent' })
      assert.equal(body.enforced, false)
      const policy = await world.make('ip_policy')
      const again = { type: 'agent', ip_policy_ids: [policy.id] }
      const { status_code, msg } = await target.api.refused('ERR_RESTRICTION_IN_USE', 'POST', '/ip_restrictions', {
        body: again,
      })
      assert.equal(status_code, 409)
      assert.match(msg, /`agent`/)
      await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { type: 'dashboard' } })
      await target.api.delete(path)
      await target.api.create('/ip_restrictions', again)
      for (const type of ['everything', '', 7]) {
        await target.api.refused('ERR_INVALID_VALUE', 'POST', '/ip_restrictions', { body: { ...again, type } })
      }
    })

    test('shows and protects its policies, in their order', async () => {
      const [one, two] = [await world.make('ip_policy'), await world.make('ip_policy')]
      const { path, id, body } = await world.make('ip_restriction', {
        type: 'dashboard',
        enforced: true,
        ip_policy_ids: [two.id, one.id],
      })
      assert.deepEqual([body.ip_policies, body.enforced], [[two.ref, one.ref], true])
      const { msg } = await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', one.path)
      assert.ok(msg.includes(id), msg)
      assert.deepEqual((await target.api.update(path, { ip_policy_ids: [two.id] })).ip_policies, [two.ref])
      await target.api.delete(one.path)
      assert.equal((await target.api.update(path, { enforced: false })).enforced, false)
    })

    test('needs 1 to 100 existing policies, each once', async () => {
      const { path, body } = await world.make('ip_restriction')
      const { id } = await world.shared('ip_policy')
      for (const ids of [[], [id, id], Array.from({ length: 101 }, () => id)]) {
        await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { ip_policy_ids: ids } })
      }
      const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', 'PATCH', path, {
        body: { ip_policy_ids: [id, unknownId('ipp_')] },
      })
      assert.match(msg, /`ip_policy_ids\[1\]`/)
      assert.deepEqual(await target.api.get(path), body)
    })
  })
})

describe('reserved addresses of a narrow range', () => {
  test('use every port that no edge has; after that, none is free until one is deleted', async () => {
    const { ports, flags } = await tcpRange(4)
    const [first, second, third, fourth] = ports
    const platform = await startPlatform({ flags: { ...flags, region: 'eu-1', domain: 'tunnels.example.com' } })
    const { admin } = platform
    try {
      await admin.create('/edges/tcp', { hostports: [`x.example.com:${third}`] })
      const made = [await admin.create('/reserved_addrs'), await admin.create('/reserved_addrs')]
      made.push(await admin.create('/reserved_addrs'))
      const host = 'eu-1.tcp.tunnels.example.com'
      assert.deepEqual(
        new Set(made.map(({ addr }) => addr)),
        new Set([`${host}:${first}`, `${host}:${second}`, `${host}:${fourth}`]),
      )
      for (const { region } of made) assert.equal(region, 'eu-1')
      const { msg, status_code } = await admin.refused('ERR_NO_FREE_PORT', 'POST', '/reserved_addrs', { body: {} })
      assert.equal(status_code, 409)
      assert.match(msg, new RegExp(`${first} and ${fourth}`))
      await admin.delete(`/reserved_addrs/${made[1].id}`)
      assert.equal((await admin.create('/reserved_addrs')).addr, made[1].addr)
    } finally {
      await platform.stop()
    }
  })
})
