/** Orders of certificates on bad days: authorities that fail, nodes that compete, names that come due. */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type AcmeServer, startAcmeServer } from '../support/acme-server.ts'
import { startAgent } from '../support/agent-process.ts'
import type { ApiClient, Json } from '../support/api-client.ts'
import { changeDatabase, queryDatabase } from '../support/change-database.ts'
import { eachStore } from '../support/databases.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { metric } from '../support/metrics.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

async function authorityFor(t: TestContext): Promise<AcmeServer> {
  const acme = await startAcmeServer()
  t.after(() => acme.stop())
  return acme
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'postern-acme-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}

const edge = (api: ApiClient, name: string): Promise<Json> => api.create('/edges/https', { hostports: [`${name}:443`] })

const reserve = (api: ApiClient, domain: string): Promise<Json> =>
  api.create('/reserved_domains', { domain, certificate_management_policy: {} })

/** The names that certificates were issued for. */
async function issuedNames(api: ApiClient): Promise<string[]> {
  const { tls_certificates: all } = await api.get('/tls_certificates')
  return all.flatMap((each: Json) => each.subject_alternative_names.dns_names).sort()
}

test('many orders due at once follow the configured pace: first certificates, then renewals in turn, then nothing', async (t) => {
  const acme = await authorityFor(t)
  // One renewal every five minutes.
  const flags = { 'acme-directory': acme.directory, 'acme-orders-per-hour': '13' }
  const platform = await startPlatform({ flags, orderTimes: { lookMs: 200 } })
  t.after(() => platform.stop())
  const { admin, databaseUrl } = platform
  acme.mood.nodes = [platform]
  const day = 86_400_000
  // Due for renewal as soon as it is issued, and valid for weeks.
  acme.mood.ageMs = 65 * day
  const created = Promise.withResolvers<void>()
  acme.mood.before = () => created.promise
  const names = Array.from({ length: 8 }, (_, i) => `n${i}.example.com`)
  for (const name of names) await edge(admin, name)
  created.resolve()
  const ordered = () => acme.orders.map(({ name }) => name)
  const untilAllWait = (count: number) =>
    until(`${count} were issued, and all wait for their turn`, async () => {
      const [row] = await queryDatabase(databaseUrl, `select count(*) as count from managed_names where stage = 3`)
      return row?.count === names.length && (await metric(platform.metricsUrl, 'postern_acme_issued_total')) === count
    })
  /** Moves the orders so many minutes into the past. */
  const pass = (minutes: number) =>
    changeDatabase(databaseUrl, [`update acme_orders set begun_at = begun_at - ${minutes * 60_000}`])

  await untilAllWait(8)
  assert.deepEqual(await issuedNames(admin), names)
  assert.deepEqual(ordered().sort(), names)

  // A renewal that somebody asks for does not wait.
  const { tls_certificates: all } = await admin.get('/tls_certificates')
  const [name] = all[3].subject_alternative_names.dns_names
  assert.equal((await admin.send('POST', `/tls_certificates/${all[3].id}/renew`)).status, 204)
  await untilAllWait(9)
  assert.deepEqual(ordered().slice(8), [name])

  for (const count of [10, 11]) {
    await pass(5)
    await untilAllWait(count)
  }

  // Nor does that of a certificate close to its end.
  acme.mood.ageMs = 85 * day
  await pass(5)
  await untilAllWait(13)
  assert.equal(ordered()[11], ordered()[12])

  // Now no order begins, and nothing else waits for one.
  await pass(5)
  await edge(admin, 'late.example.com')
  assert.equal((await admin.get('/edges/https')).https_edges.length, 9)
  assert.equal(await metric(platform.metricsUrl, 'postern_acme_orders_last_hour'), 13)
  assert.equal(acme.orders.length, 13)
  await pass(60)
  await until('the new name has its certificate', async () => (await issuedNames(admin)).includes('late.example.com'))
})

test('certificates are renewed in place while visitors connect, and no handshake fails', async (t) => {
  const acme = await authorityFor(t)
  const flags = { 'acme-directory': acme.directory, 'acme-orders-per-hour': '1000' }
  const platform = await startPlatform({ flags })
  t.after(() => platform.stop())
  acme.mood.nodes = [platform]
  const minute = 60_000
  // Past two thirds of its life when it is issued, and valid for a while longer.
  acme.mood.lifeMs = 30 * minute
  acme.mood.ageMs = 22 * minute
  await edge(platform.admin, 'app.example.com')
  await until('the first is issued', async () => (await issuedNames(platform.admin)).length === 1)
  const serials = new Set<string>()
  let failures = 0
  const handshake = () =>
    new Promise<void>((resolve) => {
      const to = { host: '127.0.0.1', port: platform.httpsPort, servername: 'app.example.com', ca: acme.ca }
      const socket = connectTls(to, () => {
        serials.add(socket.getPeerX509Certificate()?.serialNumber ?? '')
        socket.destroy()
        resolve()
      })
      socket.on('error', () => {
        failures++
        resolve()
      })
    })
  // The API shows it a moment before it is served.
  await until('it is served', async () => {
    failures = 0
    await handshake()
    return failures === 0
  })
  await until('visitors saw three of them', async () => {
    await handshake()
    return serials.size >= 3
  })
  acme.mood.ageMs = 0
  assert.equal(failures, 0)
  const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
  assert.equal(all.length, 1)
})

test('the authority says when to renew, and is told what a renewal replaces', async (t) => {
  const acme = await authorityFor(t)
  const hour = 3_600_000
  // Later than two thirds of the certificate's life, which would apply without the hint.
  const future = Date.now() + 80 * 24 * hour
  acme.mood.renewalWindow = () => {
    const isFirst = acme.orders.length === 1
    const window = isFirst ? { start: Date.now() - hour, end: Date.now() - 1 } : { start: future, end: future + hour }
    return window
  }
  // Other renewals would wait: with two an hour, only one order may begin at once.
  const platform = await startPlatform({ flags: { 'acme-directory': acme.directory, 'acme-orders-per-hour': '2' } })
  t.after(() => platform.stop())
  acme.mood.nodes = [platform]
  const { id } = await reserve(platform.admin, 'app.example.com')
  const renewsAt = await until('it was renewed, with the next renewal when the authority says', async () => {
    const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
    const at = Date.parse(status.renews_at ?? '')
    return at >= future - 1000 && at
  })
  assert.ok(renewsAt <= future + hour)
  assert.equal(acme.orders.length, 2)
  assert.equal(acme.orders[0]?.replaces, undefined)
  assert.match(acme.orders[1]?.replaces ?? '', /^[\w-]+\.[\w-]+$/)
})

test('a wildcard is proven by a DNS record that a program of the operator sets and removes', async (t) => {
  const acme = await authorityFor(t)
  const place = await folder(t)
  const [command, calls] = [join(place, 'set-record'), join(place, 'calls')]
  await writeFile(command, `#!/bin/sh\necho "$POSTERN_ACME_ACTION $1 $2 $POSTERN_BOOTSTRAP_API_KEY" >> '${calls}'\n`)
  await chmod(command, 0o755)
  const made = async () =>
    (await readFile(calls, 'utf8'))
      .trim()
      .split('\n')
      .map((call) => call.trim())
  acme.mood.txt = async (record) =>
    (await made()).filter((call) => call.startsWith(`present ${record} `)).map((call) => call.split(' ')[2] ?? '')
  const flags = { 'acme-directory': acme.directory, 'acme-dns-command': command }
  const platform = await startPlatform({ flags })
  t.after(() => platform.stop())
  await edge(platform.admin, '*.example.com')
  await until(
    'the wildcard has a certificate',
    async () => (await issuedNames(platform.admin)).join() === '*.example.com',
  )
  const all = await made()
  assert.deepEqual(
    all.map((call) => call.split(' ').slice(0, 2)),
    [
      ['present', '_acme-challenge.example.com'],
      ['cleanup', '_acme-challenge.example.com'],
    ],
  )
  assert.ok(
    all.every((call) => call.split(' ').length === 3),
    'secrets of the server are not in its environment',
  )
})

test('one wildcard, proven through the name server of its zone, serves all names below the domain', async (t) => {
  const acme = await authorityFor(t)
  const secret = Buffer.from('a secret of the name server')
  const dns = await startDnsServer({ zone: 'example.com', key: { name: 'postern', algorithm: 'hmac-sha256', secret } })
  t.after(() => dns.stop())
  const seen: string[] = []
  acme.mood.txt = (record) => {
    const values = dns.txt.get(record) ?? []
    seen.push(record)
    return values
  }
  const server = { 'acme-directory': acme.directory, 'acme-dns-server': `127.0.0.1:${dns.port}` }
  const flags = { ...server, domain: 'example.com' }
  const env = { POSTERN_ACME_DNS_KEY: `hmac-sha256:postern:${secret.toString('base64')}` }
  const platform = await startPlatform({ flags, env })
  t.after(() => platform.stop())
  await edge(platform.admin, 'app.example.com')
  await edge(platform.admin, 'deep.below.example.com')
  const names = ['*.example.com', 'deep.below.example.com']
  await until('both have certificates', async () => (await issuedNames(platform.admin)).join() === names.join())
  assert.deepEqual(seen.sort(), ['_acme-challenge.deep.below.example.com', '_acme-challenge.example.com'])
  assert.deepEqual([...dns.txt.values()].flat(), [], 'the records are gone')
})

test('an endpoint of an agent gets a certificate of its own when it comes online, up to a limit', async (t) => {
  const acme = await authorityFor(t)
  const flags = { 'acme-directory': acme.directory, domain: 'example.com', 'acme-endpoints-per-week': '1' }
  const platform = await startPlatform({ flags })
  t.after(() => platform.stop())
  acme.mood.nodes = [platform]
  const server = { server: platform.agents, caFile: platform.caFile, authtoken: platform.authtoken }
  const upstream = await httpUpstream(t, (_, response) => response.end('hello'))
  const tunnel = (domain: string) => ({ addr: upstream.address, domain })
  await startAgent(t, { ...server, tunnels: { one: tunnel('one.example.com') } })
  await until('it has a certificate', async () => (await issuedNames(platform.admin)).join() === 'one.example.com')
  await until('visitors who trust the authority reach it', async () => {
    const options = { ca: acme.ca }
    const answer = await visit(`https://one.example.com:${platform.httpsPort}`, options).catch(() => undefined)
    return answer?.text === 'hello'
  })
  await startAgent(t, { ...server, tunnels: { two: tunnel('two.example.com') } })
  await until('the limit is logged', () =>
    platform.log.some((line) => /no certificate ordered.*two|two.*no certificate ordered/.test(line)),
  )
  assert.deepEqual(
    acme.orders.map(({ name }) => name),
    ['one.example.com'],
  )
})

describe('somebody asks for another try', () => {
  /** Nothing is tried again by itself here. */
  const orderTimes = { firstPauseMs: 3_600_000, lookMs: 50, orderLooksMs: [20] } as const
  const failed = { status: 403, type: 'unauthorized' }

  async function start(t: TestContext, flags: Readonly<Record<string, string>> = {}) {
    const acme = await authorityFor(t)
    const platform = await startPlatform({ flags: { 'acme-directory': acme.directory, ...flags }, orderTimes })
    t.after(() => platform.stop())
    acme.mood.nodes = [platform]
    const jobOf = async (id: string): Promise<Json> =>
      (await platform.admin.get(`/reserved_domains/${id}`)).certificate_management_status.provisioning_job
    const failing = async (name: string): Promise<string> => {
      acme.mood.problems.push({ step: 'challenge', name, ...failed })
      const { id } = await reserve(platform.admin, name)
      await until(`it fails for ${name}`, async () => (await jobOf(id))?.error_code === 'ERR_CHALLENGE_FAILED')
      return id
    }
    return { acme, platform, jobOf, failing }
  }

  test('a member gets the certificate of a name that waits for its retry, and the status says that it is due', async (t) => {
    const { acme, platform, jobOf, failing } = await start(t)
    const id = await failing('app.example.com')
    const { api } = await platform.member()
    const asked = Date.now()
    const held = Promise.withResolvers<void>()
    acme.mood.before = (step) => (step === 'order' ? held.promise : undefined)
    const { status, text } = await api.send('POST', `/reserved_domains/${id}/retry`)
    assert.deepEqual([status, text], [204, ''])
    assert.ok(Date.parse((await jobOf(id)).retries_at) <= Math.max(asked, Date.now()), 'it is due')
    await until('the try is under way', () => acme.count('order', 'app.example.com') === 2)
    held.resolve()
    await until('it has its certificate', async () => (await issuedNames(platform.admin)).join() === 'app.example.com')
    assert.equal(acme.orders.length, 2)
    await until('nothing waits any more', async () => (await jobOf(id)) === null)
    const refused = await api.refused('ERR_CERTIFICATE_NOT_RENEWABLE', 'POST', `/reserved_domains/${id}/retry`)
    assert.match(refused.msg, /no order of `app\.example\.com` waits/)
  })

  test('a name is tried once a minute at most, however many ask at once, and other names are not held up', async (t) => {
    const { acme, platform, failing } = await start(t)
    const id = await failing('app.example.com')
    const other = await failing('other.example.com')
    acme.mood.problems.push({ step: 'challenge', name: 'app.example.com', ...failed })
    const ask = (of: string) => platform.admin.send('POST', `/reserved_domains/${of}/retry`)
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(id)))
    assert.deepEqual(
      answers.map(({ status }) => status).sort((a, b) => a - b),
      [204, ...Array(9).fill(429)],
    )
    const late = answers.find(({ status }) => status === 429)
    assert.ok(Number(late?.headers.get('retry-after')) > 50)
    assert.equal((await ask(other)).status, 204)
    await until('both were tried again', () => acme.orders.length === 4)
    await until('the other has its certificate', async () => (await issuedNames(platform.admin)).length === 1)
    assert.equal((await ask(id)).status, 429)
    assert.equal(acme.count('order', 'app.example.com'), 2)
  })

  test('a failed renewal shows when it is tried again, and is tried again when asked', async (t) => {
    const { acme, platform, jobOf } = await start(t)
    const { id } = await reserve(platform.admin, 'app.example.com')
    const certificate = await until('it has its certificate', async () => {
      const { certificate } = await platform.admin.get(`/reserved_domains/${id}`)
      return (await jobOf(id)) === null && certificate
    })
    const path = `/tls_certificates/${certificate.id}`
    const { serial_number: first } = await platform.admin.get(path)
    acme.mood.problems.push({ step: 'challenge', name: 'app.example.com', ...failed })
    assert.equal((await platform.admin.send('POST', `${path}/renew`)).status, 204)
    const job = await until('it fails', async () => {
      const now = await jobOf(id)
      return now?.error_code === 'ERR_CHALLENGE_FAILED' && now
    })
    assert.ok(Date.parse(job.retries_at) - Date.parse(job.started_at) >= orderTimes.firstPauseMs / 2)
    assert.equal((await platform.admin.get(path)).serial_number, first)
    assert.equal((await platform.admin.send('POST', `/reserved_domains/${id}/retry`)).status, 204)
    await until('it is renewed', async () => (await platform.admin.get(path)).serial_number !== first)
  })

  test('it takes no order that first certificates of others may need', async (t) => {
    const { acme, platform, failing } = await start(t, { 'acme-orders-per-hour': '5' })
    const id = await failing('app.example.com')
    await edge(platform.admin, 'first.example.com')
    await until('it has its certificate', async () => (await issuedNames(platform.admin)).length === 1)
    await platform.admin.refused('ERR_RATE_LIMITED', 'POST', `/reserved_domains/${id}/retry`)
    await edge(platform.admin, 'second.example.com')
    await until('others still get theirs', async () => (await issuedNames(platform.admin)).length === 2)
    assert.equal(acme.count('order', 'app.example.com'), 1)
  })
})

test('a wildcard without DNS shows why it is not ordered', async (t) => {
  const acme = await authorityFor(t)
  const platform = await startPlatform({ flags: { 'acme-directory': acme.directory } })
  t.after(() => platform.stop())
  const { id } = await reserve(platform.admin, '*.example.com')
  await until('it is reported', async () => {
    const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
    return status.provisioning_job.error_code === 'ERR_CERTIFICATE_NEEDS_DNS'
  })
  assert.equal(acme.orders.length, 0)
})

// Side by side, since they mostly wait for pauses and leases. Not all at once: the servers share this process, and on a
// slow machine each would give up on its database before getting any time.
describe('bad days', { concurrency: 2 }, () => {
  test('what fails once is reported and retried, with a new order only where the old one was lost', async (t) => {
    const acme = await authorityFor(t)
    // Long enough to see each failure in the API.
    const orderTimes = { firstPauseMs: 6000, lookMs: 300, orderLooksMs: [50, 100, 200, 400] } as const
    const platform = await startPlatform({ flags: { 'acme-directory': acme.directory }, orderTimes })
    t.after(() => platform.stop())
    acme.mood.nodes = [platform]
    acme.mood.badNonces = 0.5
    acme.mood.processingLooks = 2
    const limited = { status: 429, type: 'rateLimited', retryAfter: 1 }
    const broken = { status: 500, type: 'serverInternal' }
    acme.mood.problems.push(
      { step: 'order', name: 'limited.example.com', ...limited },
      { step: 'authorization', name: 'proof.example.com', ...broken },
      { step: 'finalize', name: 'final.example.com', ...broken },
      { step: 'download', name: 'late.example.com', ...broken },
      { step: 'challenge', name: 'refused.example.com', status: 403, type: 'unauthorized' },
    )
    acme.mood.lies.set('lie.example.com', 'other.example.com')
    acme.mood.wrongKeys.add('key.example.com')
    const names = ['limited', 'proof', 'final', 'late', 'refused', 'lie', 'key'].map((each) => `${each}.example.com`)
    const domains = new Map<string, Json>()
    for (const name of names) domains.set(name, await reserve(platform.admin, name))

    const reported = new Map<string, string>()
    await until('every failure was reported', async () => {
      for (const [name, { id }] of domains) {
        const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
        const job = status.provisioning_job
        if (!job?.error_code) continue
        assert.ok(job.retries_at !== null && job.started_at !== null && job.msg.length > 20)
        reported.set(name, job.error_code)
      }
      return reported.size === names.length
    })
    assert.deepEqual(Object.fromEntries(reported), {
      'limited.example.com': 'ERR_AUTHORITY_RATE_LIMIT',
      'proof.example.com': 'ERR_AUTHORITY_UNAVAILABLE',
      'final.example.com': 'ERR_AUTHORITY_UNAVAILABLE',
      'late.example.com': 'ERR_AUTHORITY_UNAVAILABLE',
      'refused.example.com': 'ERR_CHALLENGE_FAILED',
      'lie.example.com': 'ERR_CERTIFICATE_UNUSABLE',
      'key.example.com': 'ERR_CERTIFICATE_UNUSABLE',
    })
    await until(
      'every name has its certificate',
      async () => (await issuedNames(platform.admin)).length === names.length,
    )
    const ordered = Object.fromEntries(
      names.map((name) => [name, acme.orders.filter((each) => each.name === name).length]),
    )
    assert.deepEqual(ordered, {
      'limited.example.com': 1,
      'proof.example.com': 1,
      'final.example.com': 1,
      'late.example.com': 1,
      'refused.example.com': 2,
      'lie.example.com': 2,
      'key.example.com': 2,
    })
    assert.ok((await metric(platform.metricsUrl, 'postern_acme_failures_total')) >= names.length)
  })

  test('orders that never end are reported, and do not hold up others', async (t) => {
    const acme = await authorityFor(t)
    const orderTimes = { firstPauseMs: 500, lookMs: 200, orderLooks: 4, orderLooksMs: [50] } as const
    const platform = await startPlatform({ flags: { 'acme-directory': acme.directory }, orderTimes })
    t.after(() => platform.stop())
    acme.mood.nodes = [platform]
    // More than the server works on at a time.
    const stuck = Array.from({ length: 6 }, (_, i) => `stuck${i}.example.com`)
    for (const name of stuck) acme.mood.stuck.add(name)
    const domains = await Promise.all(stuck.map((name) => reserve(platform.admin, name)))
    await until('every one of them was ordered', () => acme.orders.length === stuck.length)
    await edge(platform.admin, 'app.example.com')
    await until(
      'another has its certificate',
      async () => (await issuedNames(platform.admin)).join() === 'app.example.com',
    )
    for (const { id } of domains) {
      await until('it is reported', async () => {
        const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
        return status.provisioning_job.msg.endsWith('Its order is still pending.')
      })
    }
    assert.equal(acme.orders.length, stuck.length + 1)
    // The same proof is requested again, not another one after each look.
    await until('it was continued', () => stuck.every((name) => acme.count('challenge', name) > 1))
    assert.deepEqual(new Set(acme.orders.map(({ kind }) => kind)), new Set(['http-01']))
  })

  test('an authority that is down is asked again, and one that asks for time gets it', async (t) => {
    const acme = await authorityFor(t)
    const orderTimes = { firstPauseMs: 500, lookMs: 200 }
    const platform = await startPlatform({ flags: { 'acme-directory': acme.directory }, orderTimes })
    t.after(() => platform.stop())
    acme.mood.nodes = [platform]
    let isAway = true
    acme.mood.before = () => {
      if (isAway) throw new Error('away')
    }
    await edge(platform.admin, 'app.example.com')
    await until('it was asked twice', () => acme.count('account') > 1)
    isAway = false
    await until('it has its certificate', async () => (await issuedNames(platform.admin)).length === 1)
    acme.mood.problems.push({ step: 'order', status: 429, type: 'rateLimited', retryAfter: 7200 })
    const { id } = await reserve(platform.admin, 'limited.example.com')
    const job = await until('the limit is reported', async () => {
      const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
      return status.provisioning_job.error_code === 'ERR_AUTHORITY_RATE_LIMIT' && status.provisioning_job
    })
    const warnings = platform.log.filter((line) => line.includes('no certificate for a name yet'))
    assert.ok(warnings.some((line) => line.includes('"reason":"The certificate authority issues no more')))
    assert.ok(!warnings.some((line) => line.includes('"stack"')), warnings[0])
    const waitMs = Date.parse(job.retries_at) - Date.parse(job.started_at)
    assert.ok(waitMs >= 7_200_000 - 1000, 'it waits for as long as the authority asked for')
    assert.equal(acme.count('order', 'limited.example.com'), 1)
  })

  eachStore(
    (store) => {
      test('two nodes order each name once, and both answer its challenge', async (t) => {
        const acme = await authorityFor(t)
        const databaseUrl = await store.url()
        const flags = { 'acme-directory': acme.directory, 'key-file': join(await folder(t), 'secret.key') }
        const one = await startPlatform({ databaseUrl, flags })
        t.after(() => one.stop())
        const two = await startPlatform({ databaseUrl, flags })
        t.after(() => two.stop())
        acme.mood.nodes = [one, two]
        const names = Array.from({ length: 6 }, (_, i) => `n${i}.example.com`)
        await Promise.all(names.map((name, i) => edge((i % 2 === 0 ? one : two).admin, name)))
        await until(
          'every name has its certificate',
          async () => (await issuedNames(one.admin)).length === names.length,
        )
        assert.deepEqual(acme.orders.map(({ name }) => name).sort(), names)
        assert.equal(acme.accounts, 1)
      })
    },
    ['postgres'],
  )
})
