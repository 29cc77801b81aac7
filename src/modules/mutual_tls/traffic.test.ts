import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import type { JsonGeneralNames } from '@peculiar/x509'
import { type IdentityOptions, loadX509, makeIdentity } from '../../../test/support/make-certificate.ts'
import { HeaderList } from '../../lib/http/header-list.ts'
import { handshake, reached, request, visitor } from '../testing/test-request.ts'
import { mutualTls } from './form.ts'
import { compileMutualTls } from './traffic.ts'

const valid = Date.parse('2020-06-01T00:00:00Z')
const compile = (now = valid) => compileMutualTls({ authorities: ['PEM'] }, { now: () => now })

async function certificate(options: IdentityOptions = {}): Promise<X509Certificate> {
  return new X509Certificate((await makeIdentity(options)).certificatePem)
}

const { SubjectAlternativeNameExtension } = await loadX509()
const names = (...entries: JsonGeneralNames) => [new SubjectAlternativeNameExtension(entries)]

async function reported(options: IdentityOptions): Promise<Record<string, string>> {
  const headers = new HeaderList()
  compile().upstream?.({ headers }, request({ tls: handshake(await certificate(options)) }))
  return Object.fromEntries(headers)
}

test('names the certificates of every authority', () => {
  const lookup = {
    ipRules: () => assert.fail(),
    authority: (id: string) => `PEM of ${id}`,
    backend: () => assert.fail(),
  }
  const config = { enabled: true, certificate_authority_ids: ['ca_1', 'ca_2'] }
  const settings = mutualTls.resolve(config, lookup, 'route')
  assert.deepEqual(compileMutualTls(settings, { now: () => 0 }).tls, {
    clientAuthorities: ['PEM of ca_1', 'PEM of ca_2'],
  })
  assert.throws(() => compileMutualTls({ authorities: [] }, { now: () => 0 }), /no certificate authority/)
})

test('a handshake without a client certificate is refused, a resumed one too', async () => {
  const { handshake: judge } = compile()
  assert.deepEqual(judge?.(handshake(), visitor, reached), { refuse: 'CLIENT_CERTIFICATE_REQUIRED' })
  assert.deepEqual(judge?.({ ...handshake(), isResumed: true }, visitor, reached), {
    refuse: 'CLIENT_CERTIFICATE_REQUIRED',
  })
  assert.equal(judge?.(handshake(await certificate()), visitor, reached), undefined)
})

test('a certificate that has expired or is not valid yet is refused, even if TLS accepted it', async () => {
  const tls = handshake(await certificate())
  for (const now of ['2020-05-01T16:27:58Z', '2021-05-01T16:28:00Z']) {
    assert.deepEqual(compile(Date.parse(now)).handshake?.(tls, visitor, reached), {
      refuse: 'CLIENT_CERTIFICATE_REQUIRED',
    })
  }
})

test('tells the upstream who the visitor is', async () => {
  assert.deepEqual(
    await reported({
      name: 'CN=Jane Doe, O=Example',
      serialNumber: '0A1B2C',
      extensions: names(
        { type: 'dns', value: 'a.example.com' },
        { type: 'email', value: 'jane@example.com' },
        { type: 'dns', value: 'b.example.com' },
        { type: 'email', value: 'doe@example.com' },
        { type: 'ip', value: '192.0.2.1' },
      ),
    }),
    {
      'postern-mtls-subject-cn': 'Jane Doe',
      'postern-mtls-subject-alt-name-dns': 'a.example.com,b.example.com',
      'postern-mtls-email-addresses': 'jane@example.com,doe@example.com',
      'postern-mtls-serial-number': '0a1b2c',
    },
  )
})

test('leaves out fields that the certificate lacks', async () => {
  assert.deepEqual(await reported({ name: 'O=Example', serialNumber: '01' }), { 'postern-mtls-serial-number': '01' })
})

test('a name that looks like two is left out', async () => {
  const extensions = names({ type: 'dns', value: 'a.example.com,admin' }, { type: 'dns', value: 'b.example.com' })
  assert.equal((await reported({ extensions }))['postern-mtls-subject-alt-name-dns'], 'b.example.com')
})

test('a common name cannot break out of its header', async () => {
  // Cut to its low byte, U+010A would be a line feed.
  const { 'postern-mtls-subject-cn': name = '' } = await reported({ name: 'CN=Jürgen\u010aSet-Cookie' })
  assert.equal(Buffer.from(name, 'latin1').toString('utf8'), 'Jürgen\u010aSet-Cookie')
  assert.match(name, /^[\x20-\xff]*$/)
})

test('what the visitor sent under these names is replaced', async () => {
  const headers = HeaderList.of([['Postern-MTLS-Subject-CN', 'root']])
  compile().upstream?.({ headers }, request({ tls: handshake(await certificate({ name: 'CN=jane' })) }))
  assert.deepEqual(headers.all('postern-mtls-subject-cn'), ['jane'])
})
