import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeIdentity } from '../../test/support/make-certificate.ts'
import { expiryFinding, keyFindings, metricFindings, orderFindings } from './doctor/certificates.ts'
import { checkFiles, clockFinding, diskFinding } from './doctor/machine.ts'
import { checkDomain, checkListeners, type ReachedFrom } from './doctor/reach.ts'
import { trafficFindings } from './doctor/traffic.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const GIB = 1024 ** 3

const states = (findings: readonly { readonly check: string; readonly state: string }[]) =>
  findings.map(({ check, state }) => `${check}: ${state}`)

describe('the doctor reports about the machine', () => {
  test('whether a disk is full', () => {
    assert.equal(diskFinding('/data', { free: 10 * GIB, size: 20 * GIB }).state, 'well')
    const { state, about } = diskFinding('/data', { free: GIB / 4, size: 20 * GIB })
    assert.deepEqual([state, about], ['to do', '256 MiB of 20480 MiB are free for /data'])
  })

  const limits = (hard: string) => async () => `Max processes  1 1 processes\nMax open files   1024   ${hard}   files\n`
  test('how many files may be open', async () => {
    assert.equal((await checkFiles(limits('65536'))).state, 'well')
    assert.equal((await checkFiles(limits('unlimited'))).state, 'well')
    assert.equal((await checkFiles(limits('4096'))).state, 'to do')
    assert.equal((await checkFiles(async () => '')).state, 'unknown')
  })

  test('whether its clock is wrong', () => {
    assert.equal(clockFinding('ca.test', NOW, NOW + 20_000).state, 'well')
    assert.equal(clockFinding('ca.test', NOW, NOW - 60_000).about, '60 s behind the clock of ca.test')
    assert.equal(clockFinding('ca.test', NOW, NOW + 60_000).state, 'to do')
    assert.equal(clockFinding('ca.test', Number.NaN, NOW).state, 'unknown')
  })
})

describe('the doctor reports about certificates', () => {
  const certificate = (name: string, not_after: string) => ({
    id: 'cert_1',
    subject_alternative_names: { dns_names: [name], ips: [] },
    not_after,
  })

  test('which of them expire', () => {
    const fine = certificate('fine.test', '2026-07-01T00:00:00Z')
    assert.equal(expiryFinding([fine], NOW).state, 'well')
    const soon = certificate('soon.test', '2026-06-03T00:00:00Z')
    const gone = certificate('gone.test', '2026-05-03T00:00:00Z')
    const { state, about } = expiryFinding([fine, soon, gone], NOW)
    assert.deepEqual(
      [state, about],
      ['to do', '2 of 3 expire within a week (already expired: 1): soon.test, gone.test'],
    )
  })

  test('which uploaded ones have keys that are too large', async () => {
    const { certificatePem: large } = await makeIdentity({ key: 'p521' })
    const { certificatePem: usual } = await makeIdentity()
    const shown = (name: string, certificate_pem: string, issued_at: string | null = null) => ({
      ...certificate(name, '2026-07-01T00:00:00Z'),
      ...{ certificate_pem, issued_at },
    })
    assert.deepEqual(keyFindings([shown('a.test', usual), shown('b.test', 'what is this')]), [])
    const [finding] = keyFindings([shown('a.test', usual), shown('large.test', large)])
    assert.equal(finding?.state, 'to do')
    assert.match(finding?.about ?? '', /^1 uploaded certificates .*: large\.test$/)
  })

  test('which orders failed, why, and when the next attempt is', () => {
    const policy = { authority: 'letsencrypt' }
    const domain = (name: string, provisioning_job: object | null) => ({
      domain: name,
      certificate_management_policy: policy,
      certificate_management_status: { renews_at: null, provisioning_job },
    })
    const waits = { error_code: null, msg: 'A certificate will be ordered.', retries_at: null }
    const failed = { error_code: 'ERR_DNS', msg: 'no such name', retries_at: '2026-06-02T00:00:00Z' }
    assert.deepEqual(states(orderFindings([domain('a.test', null), domain('b.test', waits)])), ['orders: well'])
    const [finding] = orderFindings([domain('a.test', null), domain('c.test', failed)])
    assert.deepEqual(finding, {
      check: 'order of c.test',
      state: 'to do',
      about: 'ERR_DNS: no such name',
      next: 'fix the cause; the next attempt is at 2026-06-02T00:00:00Z',
    })
  })

  test('what only the metrics show', () => {
    assert.deepEqual(metricFindings('postern_sessions 3\npostern_descriptor_refusals_total 0\n'), [])
    const numbers = [
      'postern_certificate_files{state="served"} 2',
      'postern_certificate_files{state="bad"} 1',
      'postern_certificate_names{next="first"} 3',
      'postern_certificate_names_failing 5',
      'postern_descriptor_refusals_total 7',
    ]
    assert.deepEqual(states(metricFindings(numbers.join('\n'))), [
      'certificate files: to do',
      'names: to do',
      'descriptors: to do',
    ])
  })
})

describe('the doctor reports about traffic', () => {
  const edge = (id: string, numbers: Readonly<Record<string, number>>, label = `edge="${id}"`) =>
    Object.entries(numbers).map(([what, value]) => {
      const kind = label.startsWith('edge') ? 'edge' : 'endpoint'
      const [name = '', status] = what.split(' ')
      return `postern_${kind}_${name}_total{${label}${status ? `,status="${status}"` : ''}} ${value}`
    })

  test('addresses that fail or refuse all the time', () => {
    const lines = [
      edge('fine', { 'requests 2xx': 100, 'requests 5xx': 20, refused: 3, connections: 9 }),
      edge('few', { 'requests 5xx': 19, refused: 19 }),
      edge('dead', { 'requests 2xx': 1, 'requests 5xx': 60, 'requests none': 40, refused: 100 }),
      edge('closed', { 'requests 4xx': 30, refused: 30 }),
      edge('missing', { 'requests 4xx': 300, refused: 0 }),
      edge('tcp-fine', { connections: 30, refused: 3 }),
      edge('tcp-closed', { refused: 40 }),
      edge('endpoints', { 'requests 4xx': 40, refused: 40 }),
      edge('', { 'requests none': 25 }, 'endpoint="ep_1",address="https://a.test"'),
    ]
    const [finding] = trafficFindings(lines.flat().join('\n'))
    assert.deepEqual(
      [finding?.state, finding?.about],
      [
        'to do',
        '4 of 8 addresses have failed or refused nearly all visitors since the server started: dead (100 of 101 failed), closed (30 of 30 refused), tcp-closed (40 of 40 refused), https://a.test (25 of 25 failed)',
      ],
    )
    assert.deepEqual(states(trafficFindings(edge('fine', { 'requests 2xx': 1 }).join('\n'))), ['visitors: well'])
    assert.deepEqual(trafficFindings(''), [])
  })

  test('a proxy in front that is not trusted', () => {
    const [finding] = trafficFindings('postern_untrusted_proxy_requests{address="10.0.0.5"} 400')
    assert.equal(finding?.check, 'proxy')
    assert.match(finding?.about ?? '', /^most requests come from 10\.0\.0\.5 /)
  })
})

describe('the doctor reports about addresses', () => {
  const own = '127.0.0.1:8443'
  const reach = (given: Partial<ReachedFrom>): ReachedFrom => ({
    addressesOf: async () => ['192.0.2.7'],
    open: async () => {},
    certificateAt: async () => 'ours',
    ...given,
  })
  const https = { address: '0.0.0.0:8443', publicPort: 443 }
  const failing = (code: string) => async (): Promise<never> => {
    throw Object.assign(new Error(code), { code })
  }

  test('which listeners accept connections, over loopback if they listen on all addresses', async () => {
    const asked: string[] = []
    const open = async (host: string, port: number) => {
      asked.push(`${host}:${port}`)
      if (port === 8080) await failing('ECONNREFUSED')()
    }
    const findings = await checkListeners({ https: '0.0.0.0:8443', http: '[::]:8080' }, reach({ open }))
    assert.deepEqual(states(findings), ['listener https: well', 'listener http: to do'])
    assert.deepEqual(asked, [own, '::1:8080'])
  })

  test('that a domain and the names below it point to this server', async () => {
    const names: string[] = []
    const addressesOf = async (name: string) => {
      names.push(name)
      return ['192.0.2.7']
    }
    const findings = await checkDomain('t.test', https, reach({ addressesOf }))
    assert.deepEqual(states(findings), ['DNS of t.test: well', 'DNS of *.t.test: well'])
    assert.match(names[1] ?? '', /^doctor-[0-9a-f]{8}\.t\.test$/)
  })

  const wrong: readonly [what: string, given: Partial<ReachedFrom>, says: RegExp][] = [
    ['have no address', { addressesOf: failing('ENOTFOUND') }, /no address: ENOTFOUND/],
    [
      'lead elsewhere',
      { certificateAt: async (host) => (host === '127.0.0.1' ? 'ours' : 'theirs') },
      /192\.0\.2\.7:443 shows a certificate that is not this server's/,
    ],
    [
      'lead to a closed port',
      { certificateAt: async (host) => (host === '127.0.0.1' ? 'ours' : failing('ETIMEDOUT')()) },
      /cannot be reached on port 443: ETIMEDOUT/,
    ],
  ]
  for (const [what, given, says] of wrong) {
    test(`that they ${what}`, async () => {
      const findings = await checkDomain('t.test', https, reach(given))
      for (const { state, about, next } of findings) {
        assert.equal(state, 'to do')
        assert.match(about, says)
        assert.notEqual(next, '')
      }
    })
  }

  test('nothing about a domain that every machine resolves to itself', async () => {
    assert.deepEqual(states(await checkDomain('localhost', https, reach({}))), ['DNS: unknown'])
  })
})
