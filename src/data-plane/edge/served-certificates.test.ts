import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { Authority, createAuthority } from '../../lib/x509/certificate-authority.ts'
import { type CertificatePair, Certificates } from './served-certificates.ts'
import { Front, tlsEdge } from './testing/test-front.ts'

const DAY = 86_400_000
const made = createAuthority()
const authority = new Authority(made.certPem, made.keyPem)

function namesOf({ cert }: CertificatePair): string | undefined {
  return new X509Certificate(cert).subjectAltName
}

/** The authority, and the names it was asked for. */
function counting(own: Authority = authority) {
  const asked: string[] = []
  const issue = (names: readonly string[]) => {
    asked.push(...names)
    return own.issue(names)
  }
  return { asked, issue }
}

const uploaded = new Map(['a.e.test', '*.e.test', '*.x.e.test'].map((name) => [name, authority.issue([name])]))

const cases: [asked: string, shown: string][] = [
  ['a.e.test', 'DNS:a.e.test'],
  ['b.e.test', 'DNS:*.e.test'],
  ['y.x.e.test', 'DNS:*.x.e.test'],
  ['x.e.test', 'DNS:*.e.test'],
  ['c.b.e.test', 'DNS:c.b.e.test'],
  ['e.test', 'DNS:e.test'],
  ['other.test', 'DNS:other.test'],
  ['test', 'DNS:test'],
  ['192.0.2.7', 'IP Address:192.0.2.7'],
]
for (const [asked, shown] of cases) {
  test(`${asked} gets ${shown}`, () => {
    const certificates = new Certificates({ authority })
    certificates.replace(uploaded)
    assert.equal(namesOf(certificates.find(asked)), shown)
  })
}

const forNobody: [asked: string, uploaded: string[], shown: string][] = [
  ['x.e.test', [], 'DNS:e.test, DNS:*.e.test'],
  ['e.test', [], 'DNS:e.test, DNS:*.e.test'],
  ['y.x.e.test', [], 'DNS:e.test, DNS:*.e.test'],
  ['other.test', [], 'DNS:e.test, DNS:*.e.test'],
  ['test', [], 'DNS:e.test, DNS:*.e.test'],
  ['', [], 'DNS:e.test, DNS:*.e.test'],
  ['x.e.test', ['*.e.test', 'e.test'], 'DNS:*.e.test'],
  ['x.e.test', ['e.test'], 'DNS:e.test, DNS:*.e.test'],
  ['e.test', ['*.e.test', 'e.test'], 'DNS:e.test'],
  ['other.test', ['*.e.test', 'e.test'], 'DNS:e.test'],
  ['other.test', ['*.e.test', 'other.test'], 'DNS:e.test, DNS:*.e.test'],
]
for (const [asked, names, shown] of forNobody) {
  test(`${asked || 'no name'}, which is not served, gets ${shown} where ${names.join(', ') || 'nothing'} is uploaded`, () => {
    const certificates = new Certificates({ authority })
    certificates.replace(new Map(names.map((name) => [name, authority.issue([name])])))
    assert.equal(namesOf(certificates.findDefault(asked, { domain: 'e.test' })), shown)
  })
}

test('all unserved names share one of our own, which is not that of the domain when it is served', () => {
  const counted = counting()
  const certificates = new Certificates({ authority: counted })
  for (const name of ['a.e.test', 'b.e.test', 'c.test']) certificates.findDefault(name, { domain: 'e.test' })
  assert.deepEqual(counted.asked, ['e.test', '*.e.test'])
  assert.equal(namesOf(certificates.find('e.test')), 'DNS:e.test')
})

test('a certificate of our own is issued once', () => {
  const counted = counting()
  const certificates = new Certificates({ authority: counted })
  assert.equal(certificates.find('a.test'), certificates.find('a.test'))
  assert.deepEqual(counted.asked, ['a.test'])
})

test('names below a wildcard share one of our own, whatever visitors make up', () => {
  const counted = counting()
  const certificates = new Certificates({ authority: counted })
  const ids = ['a.w.test', 'b.w.test'].map((name) => certificates.find(name, { wildcard: '*.w.test' }).id)
  assert.equal(ids[0], ids[1])
  assert.deepEqual(counted.asked, ['*.w.test'])
})

test('names deep below a wildcard get certificates of their own, a fixed number of them', () => {
  let now = Date.now()
  const counted = counting()
  const certificates = new Certificates({ authority: counted, now: () => now })
  const shown = (name: string) => namesOf(certificates.find(name, { wildcard: '*.w.test' }))
  assert.equal(shown('a.b.w.test'), 'DNS:*.b.w.test')
  for (let i = 0; i < 200; i++) shown(`a.x${i}.w.test`)
  // 32 of them, and the one of the wildcard.
  assert.equal(counted.asked.length, 33)
  assert.equal(shown('a.x199.w.test'), 'DNS:*.w.test')
  assert.equal(shown('c.b.w.test'), 'DNS:*.b.w.test')
  assert.equal(namesOf(certificates.find('a.b.v.test', { wildcard: '*.v.test' })), 'DNS:*.b.v.test')

  now += 3_600_001
  assert.equal(shown('a.x199.w.test'), 'DNS:*.x199.w.test', 'a name unused for an hour makes room')
  assert.equal(shown('c.b.w.test'), 'DNS:*.b.w.test')
})

test('handshakes for many names deep below a wildcard do not issue a certificate for each', async (t) => {
  const front = await new Front().start()
  t.after(() => front.stop())
  const issued: string[] = []
  const { authority: own } = front
  const issue = own.issue.bind(own)
  own.issue = (names) => {
    issued.push(...names)
    return issue(names)
  }
  const edge = { ...tlsEdge('w'), names: ['*.w.test'] }
  for (let i = 0; i < 100; i++) {
    const name = `x.y${i}.w.test`
    front.edges.set(name, edge)
    const visitor = await front.enter(name, { checkServerIdentity: () => undefined })
    visitor.destroy()
  }
  assert.equal(issued.length, 33)
  assert.equal(front.servers.size, 33)
})

test('a certificate of our own is renewed 30 days before it expires', () => {
  let now = Date.now()
  const own = new Authority(made.certPem, made.keyPem, { now: () => now })
  const certificates = new Certificates({ authority: own, now: () => now })
  const first = certificates.find('a.test')
  now += 360 * DAY
  assert.equal(certificates.find('a.test').id, first.id)
  now += 10 * DAY
  const second = certificates.find('a.test')
  assert.notEqual(second.id, first.id)
  assert.ok(new X509Certificate(second.cert).validToDate.getTime() > now + 300 * DAY)
})

test('an authority that is about to expire does not issue for every visitor', () => {
  let now = authority.notAfter - 5 * DAY
  const counted = counting(new Authority(made.certPem, made.keyPem, { now: () => now }))
  const certificates = new Certificates({ authority: counted, now: () => now })
  for (let i = 0; i < 10; i++) certificates.find('a.test')
  assert.equal(counted.asked.length, 1)
  now += 2 * DAY
  certificates.find('a.test')
  assert.equal(counted.asked.length, 2)
})

test('certificates of our own are bounded, and the one requested last stays', () => {
  const counted = counting()
  const certificates = new Certificates({ authority: counted, maxIssued: 2 })
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) certificates.find(name)
  assert.deepEqual(counted.asked, ['a', 'b', 'c', 'b'])
})

test('equal pairs have equal ids, and others do not', () => {
  const certificates = new Certificates({ authority })
  const pair = authority.issue(['a.test'])
  const { id } = certificates.identify(pair)
  assert.equal(certificates.identify({ ...pair }).id, id)
  assert.notEqual(certificates.identify({ ...pair, key: `${pair.key}\n` }).id, id)
  assert.notEqual(certificates.identify(authority.issue(['a.test'])).id, id)
})

test('reports when uploaded ones expire, and skips unreadable ones', () => {
  const certificates = new Certificates({ authority })
  const pair = authority.issue(['a.test'])
  certificates.replace(
    new Map<string, CertificatePair>([
      ['a.test', pair],
      ['b.test', { cert: 'nonsense', key: '' }],
      ['*.c.test', pair],
    ]),
  )
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(
      [...certificates.expiries()],
      [
        ['a.test', pair.notAfter],
        ['*.c.test', pair.notAfter],
      ],
    )
  }
})

test('reports when the first uploaded one expires', () => {
  const certificates = new Certificates({ authority })
  assert.equal(certificates.firstExpiry, undefined)
  const early = new Authority(made.certPem, made.keyPem, { now: () => Date.now() - DAY }).issue(['early.test'])
  const late = authority.issue(['late.test'])
  certificates.replace(
    new Map<string, CertificatePair>([
      ['late.test', late],
      ['early.test', early],
      ['b.test', { cert: 'nonsense', key: '' }],
    ]),
  )
  assert.equal(certificates.firstExpiry, early.notAfter)
  assert.ok(early.notAfter < late.notAfter)
})

test('an uploaded certificate is shown to the next visitor, and a removed one no longer', async () => {
  const front = await new Front({ edges: { 'a.test': tlsEdge('a') } }).start()
  const shown = async () => {
    const visitor = await front.enter('a.test')
    const serial = visitor.getPeerX509Certificate()?.serialNumber
    visitor.destroy()
    return serial
  }
  const own = await shown()
  const pair = front.authority.issue(['a.test'])
  front.certificates.replace(new Map([['a.test', pair]]))
  assert.equal(await shown(), new X509Certificate(pair.cert).serialNumber)
  front.certificates.replace(new Map())
  assert.equal(await shown(), own)
  await front.stop()
})
