import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { MAX_CA_CERTIFICATES, MAX_CA_PEM_BYTES, readCaCertificates } from './certificate.ts'

let x509: typeof import('@peculiar/x509')
let root: string
let other: string

before(async () => {
  provideReflectMetadata()
  x509 = await import('@peculiar/x509')
  const { keyCertSign, cRLSign, digitalSignature } = x509.KeyUsageFlags
  root = await makeCertificate({
    name: 'CN=Example Root, O=Example',
    extensions: [
      new x509.BasicConstraintsExtension(true, 1, true),
      new x509.KeyUsagesExtension(digitalSignature | keyCertSign | cRLSign, true),
      new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2', '1.3.6.1.4.1.99999.7']),
    ],
  })
  other = await makeCertificate({ name: 'CN=Other Root', extensions: [new x509.BasicConstraintsExtension(true)] })
})

test('describes the first certificate, even if it has expired', () => {
  const { certificates, first } = readCaCertificates(root)
  assert.deepEqual(first, {
    subject_common_name: 'Example Root',
    not_before: '2020-05-01T16:27:59Z',
    not_after: '2021-05-01T16:27:59Z',
    key_usages: ['digital_signature', 'cert_sign', 'crl_sign'],
    extended_key_usages: ['server_auth', 'client_auth', '1.3.6.1.4.1.99999.7'],
  })
  const { raw } = new X509Certificate(root)
  assert.deepEqual(certificates, [
    { pem: new X509Certificate(root).toString(), fingerprint: createHash('sha256').update(raw).digest('hex') },
  ])
})

test('names every key usage and every well-known extended key usage', async () => {
  const pem = await makeCertificate({
    extensions: [
      new x509.BasicConstraintsExtension(true),
      new x509.KeyUsagesExtension(0x1ff),
      new x509.ExtendedKeyUsageExtension([1, 2, 3, 4, 8, 9].map((n) => `1.3.6.1.5.5.7.3.${n}`)),
    ],
  })
  const { key_usages, extended_key_usages } = readCaCertificates(pem).first
  assert.deepEqual(key_usages, [
    'digital_signature',
    'content_commitment',
    'key_encipherment',
    'data_encipherment',
    'key_agreement',
    'cert_sign',
    'crl_sign',
    'encipher_only',
    'decipher_only',
  ])
  const named = ['server_auth', 'client_auth', 'code_signing', 'email_protection', 'time_stamping', 'ocsp_signing']
  assert.deepEqual(extended_key_usages, named)
})

test('reads an RSA and an Ed25519 certificate, and a subject without or with several common names', async () => {
  const rsa = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    publicExponent: new Uint8Array([1, 0, 1]),
    modulusLength: 2048,
  }
  const cases = [
    { name: 'O=Nobody', algorithm: rsa, expected: '' },
    { name: 'CN=Zürich ☃ \\, Inc', algorithm: { name: 'Ed25519' }, expected: 'Zürich ☃ , Inc' },
    { name: 'CN=outer, O=Example, CN=inner', algorithm: ecdsa, expected: 'inner' },
  ]
  for (const { name, algorithm, expected } of cases) {
    const pem = await makeCertificate({ name, algorithm, extensions: [new x509.BasicConstraintsExtension(true)] })
    const { first } = readCaCertificates(pem)
    assert.equal(first.subject_common_name, expected)
    assert.deepEqual([first.key_usages, first.extended_key_usages], [[], []])
  }
})

test('reads several certificates in order, with any text between and around them', () => {
  const joined = {
    'one after the other': `${root}\n${other}\n`,
    'without a line break between them': `${root.trim()}${other.trim()}`,
    'with comments': `# first: keep -- until 2030\n${root}\n\nsubject=CN = Other\nCertificate:\n    Data:\n${other}\n# end`,
    'with CRLF': `${root}\n${other}\n`.replaceAll('\n', '\r\n'),
  }
  for (const [how, text] of Object.entries(joined)) {
    const { certificates, first } = readCaCertificates(text)
    const expected = [root, other].map((pem) => new X509Certificate(pem).toString())
    assert.deepEqual(
      certificates.map(({ pem }) => pem),
      expected,
      how,
    )
    assert.equal(first.subject_common_name, 'Example Root', how)
  }
})

test('refuses a certificate that is not a CA, and says which', async () => {
  const leaf = await makeCertificate({ extensions: [new x509.BasicConstraintsExtension(false)] })
  const bare = await makeCertificate({ extensions: [] })
  refuses(leaf, /^The certificate is not a CA certificate/)
  refuses(bare, /^The certificate is not a CA certificate/)
  refuses(`${root}\n${leaf}\n`, /^Certificate 2 of 2 is not a CA certificate/)
})

test('refuses a private key anywhere and never repeats it', () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const [, secret = ''] = pem.split('\n')
  for (const text of [pem, `${root}\n${pem}`, `${pem}${root}`, `${root}\n-----BEGIN RSA PRIVATE KEY-----\n${secret}`]) {
    const error = refuses(text, /holds a private key, which must not be sent/)
    assert.ok(!`${error.stack}`.includes(secret))
  }
})

test('refuses text that is not a list of complete certificates', () => {
  const body = root.split('\n').slice(1, -1).join('\n')
  const withTail = Buffer.concat([new X509Certificate(root).raw, Buffer.of(0)]).toString('base64')
  const cases: [text: string, message: RegExp][] = [
    ['', /There is no certificate here/],
    ['hello', /There is no certificate here/],
    [body, /There is no certificate here/],
    [block('CERTIFICATE REQUEST', body), /remove the `CERTIFICATE REQUEST` block/],
    [`${root}\n${block('PUBLIC KEY', body)}`, /remove the `PUBLIC KEY` block/],
    [block('X509 CRL', body), /remove the `X509 CRL` block/],
    [block('nonsense <b>', body), /remove the other block/],
    [`${root}\n-----BEGIN CERTIFICATE-----\n${body}`, /lacks its `BEGIN` or `END` line/],
    [`${root}\n-----END CERTIFICATE-----\n`, /lacks its `BEGIN` or `END` line/],
    [block('CERTIFICATE', ''), /cannot be read.*base64 only/],
    [block('CERTIFICATE', `Proc-Type: 4\n${body}`), /cannot be read.*base64 only/],
    [block('CERTIFICATE', body.slice(0, 400)), /^The certificate cannot be read/],
    [block('CERTIFICATE', withTail), /^The certificate cannot be read/],
    [block('CERTIFICATE', Buffer.from(root).toString('base64')), /^The certificate cannot be read/],
    [`${root}\n${block('CERTIFICATE', 'AAAA')}`, /^Certificate 2 of 2 cannot be read/],
  ]
  for (const [text, message] of cases) refuses(text, message)
})

test('refuses a certificate whose public key cannot be decoded, at which Node itself can crash', () => {
  const der = Buffer.from(new X509Certificate(root).raw)
  // The point follows the curve's OID and a BIT STRING header of 03 42 00; its first byte must be 4.
  const curve = Buffer.from('06082a8648ce3d03010703420004', 'hex')
  der[der.indexOf(curve) + curve.length - 1] = 0x55
  refuses(block('CERTIFICATE', der.toString('base64')), /^The certificate cannot be read/)
})

test('accepts certificates up to the limits of number and bytes, and no more', () => {
  const most = `${other}\n`.repeat(MAX_CA_CERTIFICATES)
  assert.equal(readCaCertificates(most).certificates.length, MAX_CA_CERTIFICATES)
  refuses(`${most}${other}`, /^At most 64 certificates/)
  const full = other + '\n'.repeat(MAX_CA_PEM_BYTES - other.length)
  assert.equal(readCaCertificates(full).certificates.length, 1)
  refuses(`${full}\n`, /over 256 KiB/)
})

test('a changed byte in a certificate gives a result or an Error with a message, never anything else', () => {
  const { raw } = new X509Certificate(root)
  const change = fc.record({ at: fc.nat(raw.length - 1), value: fc.nat(255) })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat(raw.length), (changes, length) => {
      const der = Buffer.from(raw)
      for (const { at, value } of changes) der[at] = value
      for (const bytes of [der, der.subarray(0, length)]) {
        try {
          readCaCertificates(block('CERTIFICATE', bytes.toString('base64')))
        } catch (error) {
          assert.ok(
            error instanceof Error && error.name === 'BadInput' && error.message.startsWith('The cert'),
            String(error),
          )
        }
      }
    }),
    { numRuns: 500 },
  )
})

const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

interface CertificateOptions {
  name?: string
  algorithm?: { name: string }
  extensions: import('@peculiar/x509').Extension[]
}

async function makeCertificate({
  name = 'CN=Test',
  algorithm = ecdsa,
  extensions,
}: CertificateOptions): Promise<string> {
  const generated = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  assert.ok('privateKey' in generated)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name,
    notBefore: new Date('2020-05-01T16:27:59Z'),
    notAfter: new Date('2021-05-01T16:27:59Z'),
    signingAlgorithm: algorithm,
    keys: generated,
    extensions,
  })
  return certificate.toString('pem')
}

function block(label: string, body: string): string {
  return `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`
}

function refuses(text: string, message: RegExp): Error {
  try {
    readCaCertificates(text)
  } catch (error) {
    assert.ok(error instanceof Error)
    assert.match(error.message, message)
    return error
  }
  return assert.fail(`expected a refusal that matches ${message}`)
}

/** The part of `reflect-metadata` without which @peculiar/x509 does not load. */
function provideReflectMetadata(): void {
  if ('getMetadata' in Reflect) return
  const stored = new WeakMap<object, Map<unknown, unknown>>()
  Object.assign(Reflect, {
    getMetadata: (key: unknown, target: object) => stored.get(target)?.get(key),
    getOwnMetadata: (key: unknown, target: object) => stored.get(target)?.get(key),
    defineMetadata: (key: unknown, value: unknown, target: object) => {
      stored.set(target, (stored.get(target) ?? new Map()).set(key, value))
    },
  })
}
