import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { checkServerIdentity, connect, createServer } from 'node:tls'
import { promisify } from 'node:util'
import { readCaCertificates } from './certificate.ts'
import { Authority, createAuthority } from './certificate-authority.ts'
import { certificateParts, readCertificateFields } from './certificate-fields.ts'
import { readTlsCertificate } from './tls-certificate.ts'
import { alternativeNames, sanTag } from './x509-names.ts'

const DAY = 86_400_000
const run = promisify(execFile)
const made = createAuthority()
const authority = new Authority(made.certPem, made.keyPem)

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-ca-'))
  writeFileSync(join(folder, 'ca.pem'), made.certPem)
})
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

test('an authority has the extensions of a CA and is valid for ten years', () => {
  const { first } = readCaCertificates(made.certPem)
  assert.match(first.subject_common_name, /^Postern CA [0-9a-f]{8}$/)
  assert.deepEqual(first.key_usages, ['cert_sign', 'crl_sign'])
  assert.deepEqual(first.extended_key_usages, [])
  assert.equal(Date.parse(first.not_after) - Date.parse(first.not_before), 3650 * DAY)
  assert.ok(Math.abs(Date.now() - 3_600_000 - Date.parse(first.not_before)) < 60_000)
  assert.equal(authority.notAfter, Date.parse(first.not_after))
})

test('an issued certificate has the extensions of a server and is valid for at most 397 days', () => {
  const { cert, key, notAfter } = authority.issue(['app.example.com', '*.app.example.com', '192.0.2.7', '2001:db8::7'])
  const read = readTlsCertificate(cert, key)
  assert.equal(read.subject.commonName, 'app.example.com')
  assert.deepEqual(read.dnsNames, ['app.example.com', '*.app.example.com'])
  assert.deepEqual(read.ips, ['192.0.2.7', '2001:db8::7'])
  assert.deepEqual(read.keyUsages, ['digital_signature'])
  assert.deepEqual(read.extendedKeyUsages, ['server_auth'])
  assert.equal(read.privateKeyType, 'ecdsa')
  assert.equal(Date.parse(read.notAfter), notAfter)
  assert.ok(notAfter - Date.parse(read.notBefore) <= 397 * DAY)
  assert.ok(Date.parse(read.notBefore) <= Date.now() - 3_599_000)
  assert.match(read.issuerCommonName, /^Postern CA /)
  assert.equal(new X509Certificate(cert).ca, false)
})

test('the certificate of a member names no host, is for both ends, and expires with the authority', async () => {
  const { cert, notAfter } = authority.issueMember('urn:example:a:1')
  const read = new X509Certificate(cert)
  const { extensions } = certificateParts(read.raw)
  assert.deepEqual(
    alternativeNames(extensions).map(({ tag, body }) => [tag, body.toString()]),
    [[sanTag.uri, 'urn:example:a:1']],
  )
  const fields = readCertificateFields(read.raw)
  assert.deepEqual(fields, {
    ...{ commonName: '', isCa: false },
    ...{ keyUsages: ['digital_signature'], extendedKeyUsages: ['server_auth', 'client_auth'] },
  })
  assert.ok(Math.abs(Date.now() - DAY - read.validFromDate.getTime()) < 60_000)
  assert.deepEqual([notAfter, read.validToDate.getTime()], [authority.notAfter, authority.notAfter])
  file('member.pem', cert)
  for (const purpose of ['sslclient', 'sslserver']) {
    const { stdout } = await run('openssl', verify('member.pem', '-purpose', purpose))
    assert.match(stdout, /: OK/)
  }
  await assert.rejects(run('openssl', verify('member.pem', '-verify_hostname', 'urn:example:a:1')))
})

test('serial numbers have 128 random bits and do not repeat', () => {
  const serials = Array.from({ length: 50 }, () => new X509Certificate(authority.issue(['a.test']).cert).serialNumber)
  assert.equal(new Set(serials).size, 50)
  assert.ok(serials.every((serial) => serial.length <= 32))
  // Fifty random numbers do not all begin with a zero byte.
  assert.ok(serials.some((serial) => serial.length === 32))
})

for (const byte of [0, 0x7f, 0x80, 0xff]) {
  test(`a serial number of bytes ${byte} is positive`, async () => {
    const random = (bytes: number) => Buffer.alloc(bytes, byte)
    const issuer = new Authority(made.certPem, made.keyPem, { random })
    const path = file('serial.pem', issuer.issue(['a.test']).cert)
    const { stdout } = await run('openssl', ['x509', '-in', path, '-noout', '-serial'])
    assert.equal(stdout.trim(), `serial=${byte === 0 ? '01' : byte.toString(16).toUpperCase().repeat(16)}`)
  })
}

const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`

test('a name too long for the subject is only in the list of names, which is then critical', async () => {
  assert.equal(longest.length, 253)
  const { cert, key } = authority.issue([longest])
  const read = readTlsCertificate(cert, key)
  assert.equal(read.subject.commonName, '')
  assert.deepEqual(read.dnsNames, [longest])
  const { stdout } = await run('openssl', ['x509', '-in', file('long.pem', cert), '-noout', '-text'])
  assert.match(stdout, /X509v3 Subject Alternative Name: critical/)
  const { stdout: verified } = await run('openssl', verify('long.pem', '-verify_hostname', longest))
  assert.match(verified, /: OK/)
})

function verify(name: string, ...more: string[]): string[] {
  return ['verify', '-x509_strict', '-CAfile', join(folder, 'ca.pem'), ...more, join(folder, name)]
}

test('openssl accepts both under its strict rules, for their names and no others', async () => {
  await run('openssl', [
    'verify',
    '-x509_strict',
    '-check_ss_sig',
    '-CAfile',
    join(folder, 'ca.pem'),
    join(folder, 'ca.pem'),
  ])
  file('leaf.pem', authority.issue(['app.example.com', '*.app.example.com', '127.0.0.1', '::1']).cert)
  const good = [
    ['-verify_hostname', 'app.example.com'],
    ['-verify_hostname', 'x.app.example.com'],
    ['-verify_ip', '127.0.0.1'],
    ['-verify_ip', '::1'],
    ['-purpose', 'sslserver'],
  ]
  for (const args of good) await run('openssl', verify('leaf.pem', ...args))
  const bad = [
    ['-verify_hostname', 'other.example.com'],
    ['-verify_hostname', 'x.y.app.example.com'],
    ['-verify_ip', '127.0.0.2'],
    ['-purpose', 'sslclient'],
  ]
  for (const args of bad) await assert.rejects(run('openssl', verify('leaf.pem', ...args)), args.join(' '))
})

test('openssl shows the extensions that clients look for', async () => {
  const path = file('shown.pem', authority.issue(['a.test']).cert)
  const { stdout } = await run('openssl', ['x509', '-in', path, '-noout', '-text'])
  assert.match(stdout, /Version: 3/)
  assert.match(stdout, /X509v3 Basic Constraints: critical\s+CA:FALSE/)
  assert.match(stdout, /X509v3 Key Usage: critical\s+Digital Signature\s/)
  const ca = await run('openssl', ['x509', '-in', join(folder, 'ca.pem'), '-noout', '-text'])
  const own = /Subject Key Identifier:\s+([0-9A-F:]+)/.exec(ca.stdout)?.[1]
  assert.ok(own)
  assert.equal(/Authority Key Identifier:\s+(?:keyid:)?([0-9A-F:]+)/.exec(stdout)?.[1], own)
  assert.notEqual(/Subject Key Identifier:\s+([0-9A-F:]+)/.exec(stdout)?.[1], own)
  assert.match(ca.stdout, /X509v3 Basic Constraints: critical\s+CA:TRUE/)
})

test('Node trusts a server with an issued certificate, at every version of TLS', async () => {
  const { cert, key } = authority.issue(['app.example.com', '127.0.0.1'])
  const server = createServer({ cert, key }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = connect({
      ...{ port, host: '127.0.0.1', servername: 'app.example.com', ca: made.certPem },
      ...{ minVersion: version, maxVersion: version, checkServerIdentity },
    })
    await once(socket, 'secureConnect')
    assert.equal(socket.authorized, true)
    socket.destroy()
  }
  const stranger = createAuthority().certPem
  const wary = connect({ port, host: '127.0.0.1', servername: 'app.example.com', ca: stranger })
  const [error] = await once(wary, 'error')
  assert.match(String(error), /unable to verify|self.signed|UNABLE_TO/i)
  server.close()
})

test('curl trusts a server with an issued certificate, by name and by address', async () => {
  const { cert, key } = authority.issue(['app.localhost', '127.0.0.1'])
  const server = createHttpsServer({ cert, key }, (_, response) => response.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const curl = (host: string) =>
    run('curl', [
      ...['-sS', '--noproxy', '*', '--cacert', join(folder, 'ca.pem')],
      ...['--resolve', `${host}:${port}:127.0.0.1`, `https://${host}:${port}/`],
    ])
  assert.equal((await curl('app.localhost')).stdout, 'hello')
  assert.equal((await curl('127.0.0.1')).stdout, 'hello')
  await assert.rejects(curl('other.localhost'), /60|SSL/)
  server.close()
  server.closeAllConnections()
})

test('no issued certificate outlives the authority', () => {
  const later = new Authority(made.certPem, made.keyPem, { now: () => authority.notAfter - DAY })
  assert.equal(later.issue(['a.test']).notAfter, authority.notAfter)
})

test('an intermediate authority is sent along with the certificates it issued', async () => {
  const { cert: below, key } = authority.issue(['Below'])
  // We issue no intermediate authorities, so openssl makes one, as an operator might provide.
  assert.throws(() => new Authority(below, key), /CA:TRUE/)
  const csr = join(folder, 'sub.csr')
  const subKey = join(folder, 'sub.key')
  const config = file(
    'sub.cnf',
    'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n',
  )
  await run('openssl', [
    ...['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
    ...['-keyout', subKey, '-out', csr, '-subj', '/CN=Sub'],
  ])
  const { stdout: sub } = await run('openssl', [
    ...['x509', '-req', '-in', csr, '-CA', join(folder, 'ca.pem'), '-CAkey', file('ca.key', made.keyPem)],
    ...['-days', '30', '-extfile', config],
  ])
  const { stdout: subKeyPem } = await run('cat', [subKey])
  const issued = new Authority(sub, subKeyPem).issue(['a.test'])
  assert.equal(issued.cert.match(/BEGIN CERTIFICATE/g)?.length, 2)
  readTlsCertificate(issued.cert, issued.key)
  await run('openssl', verify('chain.pem', '-untrusted', file('chain.pem', issued.cert)))
})

test('a certificate and key that are not an authority are refused, without quoting the key', () => {
  const other = createAuthority()
  const cases: [cert: string, key: string, why: RegExp][] = [
    [made.certPem, other.keyPem, /does not belong to the certificate/],
    ['nonsense', made.keyPem, /certificate of the authority cannot be read/],
    [made.certPem, made.keyPem.slice(0, -60), /key of the authority cannot be read/],
    [authority.issue(['a.test']).cert, made.keyPem, /CA:TRUE/],
  ]
  for (const [cert, key, why] of cases) {
    assert.throws(
      () => new Authority(cert, key),
      (error: Error) => {
        assert.match(error.message, why)
        assert.ok(!error.message.includes(made.keyPem.slice(60, 80)))
        assert.equal(error.cause, undefined)
        return true
      },
    )
  }
})

test('two authorities have different names', () => {
  const [a, b] = [createAuthority(), createAuthority()].map(({ certPem }) => new X509Certificate(certPem))
  assert.ok(a && b)
  assert.ok(!certificateParts(a.raw).subject.body.equals(certificateParts(b.raw).subject.body))
})
