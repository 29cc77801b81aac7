import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { type Identity, type IdentityOptions, loadX509, makeIdentity } from '../../../test/support/make-certificate.ts'
import { operatorsKeys } from './private-key.ts'
import { BadTlsCertificate, readTlsCertificate } from './tls-certificate.ts'

let root: Identity
let intermediate: Identity
let leaf: Identity

before(async () => {
  root = await makeIdentity({ name: 'CN=Root', isCa: true })
  intermediate = await makeIdentity({ name: 'CN=Intermediate', isCa: true, issuer: root })
  leaf = await makeIdentity({ name: 'CN=leaf.example.com', issuer: intermediate })
})

test('reads the fields of a certificate, even if it has expired', async () => {
  const x509 = await loadX509()
  const { certificatePem, privateKeyPem } = await makeIdentity({
    name: 'C=DE, ST=Berlin, L=Mitte, O=Example Ä, OU=First, OU=Last, CN=app.example.com',
    dnsNames: ['app.example.com', '*.app.example.com'],
    ips: ['192.0.2.7', '2001:db8::7'],
    serialNumber: '0a1bff',
    extensions: [
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature),
      new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1']),
    ],
  })
  assert.deepEqual(readTlsCertificate(certificatePem, privateKeyPem), {
    subject: {
      commonName: 'app.example.com',
      country: 'DE',
      locality: 'Mitte',
      province: 'Berlin',
      organization: 'Example Ä',
      organizationalUnit: 'Last',
    },
    issuerCommonName: 'app.example.com',
    dnsNames: ['app.example.com', '*.app.example.com'],
    ips: ['192.0.2.7', '2001:db8::7'],
    notBefore: '2020-05-01T16:27:59Z',
    notAfter: '2021-05-01T16:27:59Z',
    keyUsages: ['digital_signature'],
    extendedKeyUsages: ['server_auth'],
    serialNumber: '0a1bff',
    privateKeyType: 'ecdsa',
  })
})

const keyTypes = { p256: 'ecdsa', p384: 'ecdsa', rsa2048: 'rsa', rsa4096: 'rsa', ed25519: 'ed25519' } as const
for (const [key, type] of Object.entries(keyTypes) as [NonNullable<IdentityOptions['key']>, string][]) {
  test(`accepts a key of ${key} in every usual form`, async () => {
    const { certificatePem, privateKeyPem } = await makeIdentity({ key })
    const parsed = createPrivateKey(privateKeyPem)
    const forms = [privateKeyPem, `Bag Attributes\n${privateKeyPem.replaceAll('\n', '\r\n')}`]
    if (type === 'rsa') forms.push(parsed.export({ type: 'pkcs1', format: 'pem' }).toString())
    if (type === 'ecdsa') {
      const sec1 = parsed.export({ type: 'sec1', format: 'pem' }).toString()
      forms.push(sec1, `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1}`)
    }
    for (const form of forms) assert.equal(readTlsCertificate(certificatePem, form).privateKeyType, type, form)
  })
}

test('accepts a chain in order, with or without its root', () => {
  const { certificatePem: own, privateKeyPem } = leaf
  for (const chain of [
    own,
    own + intermediate.certificatePem,
    own + intermediate.certificatePem + root.certificatePem,
  ]) {
    const read = readTlsCertificate(chain, privateKeyPem)
    assert.deepEqual([read.subject.commonName, read.issuerCommonName], ['leaf.example.com', 'Intermediate'])
  }
})

test('refuses a chain that is out of order, has a gap, or is signed by another issuer of the same name', async () => {
  const impostor = await makeIdentity({ name: 'CN=Intermediate', isCa: true, issuer: root })
  const { certificatePem: own, privateKeyPem } = leaf
  refuses('chain', /Certificate 2 did not issue certificate 1/, own + root.certificatePem, privateKeyPem)
  refuses('chain', /Certificate 2 did not/, own + impostor.certificatePem, privateKeyPem)
  refuses('chain', /Certificate 3 did not issue certificate 2/, own + intermediate.certificatePem + own, privateKeyPem)
  // The key's own certificate must be the first, or clients would get another one.
  const reversed = intermediate.certificatePem + own
  refuses('chain', /did not issue/, reversed, privateKeyPem)
  refuses('pair', /does not belong to the first/, intermediate.certificatePem + root.certificatePem, privateKeyPem)
})

test('refuses a key of another certificate, and one whose private half is damaged', async () => {
  refuses('pair', /not belong/, leaf.certificatePem, root.privateKeyPem)
  refuses('pair', /not belong/, leaf.certificatePem, (await makeIdentity({ key: 'ed25519' })).privateKeyPem)
  const jwk = createPrivateKey(leaf.privateKeyPem).export({ format: 'jwk' })
  const damaged = createPrivateKey(root.privateKeyPem).export({ format: 'jwk' })
  const der = Buffer.from(createPrivateKey(leaf.privateKeyPem).export({ type: 'sec1', format: 'der' }))
  const at = der.indexOf(Buffer.from(String(jwk.d), 'base64url'))
  Buffer.from(String(damaged.d), 'base64url').copy(der, at)
  refuses('pair', /not belong/, leaf.certificatePem, block('EC PRIVATE KEY', der.toString('base64')))
})

test('refuses keys that TLS should not use, and says why', async () => {
  const pem = (key: { export: (o: { type: 'pkcs8'; format: 'pem' }) => string | Buffer }) =>
    key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const cases: [string, RegExp][] = [
    [(await makeIdentity({ key: 'rsa1024' })).privateKeyPem, /2048 to 4096 bits; this one has 1024/],
    // A handshake with one of these holds up everybody else's (D109).
    [pem(generateKeyPairSync('rsa', { modulusLength: 4104 }).privateKey), /2048 to 4096 bits; this one has 4104/],
    [(await makeIdentity({ key: 'p521' })).privateKeyPem, /P-256, P-384/],
    [pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey), /P-256, P-384/],
    [pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey), /RSA, EC or Ed25519/],
    [pem(generateKeyPairSync('x25519').privateKey), /RSA, EC or Ed25519/],
  ]
  for (const [key, message] of cases) refuses('key', message, leaf.certificatePem, key)
})

test('accepts larger keys where the operator gives them, up to 8192 bits', async () => {
  const { certificatePem, privateKeyPem } = await makeIdentity({ key: 'p521' })
  assert.equal(readTlsCertificate(certificatePem, privateKeyPem, operatorsKeys).privateKeyType, 'ecdsa')
  const { certificatePem: own, privateKeyPem: large } = await makeIdentity({ key: 'rsa4104' })
  assert.equal(readTlsCertificate(own, large, operatorsKeys).privateKeyType, 'rsa')
})

test('refuses an encrypted key with advice, and never quotes any key', async () => {
  const key = createPrivateKey(leaf.privateKeyPem)
  const cipher = { cipher: 'aes-256-cbc', passphrase: 'x' }
  const pkcs8 = key.export({ type: 'pkcs8', format: 'pem', ...cipher }).toString()
  const sec1 = key.export({ type: 'sec1', format: 'pem', ...cipher }).toString()
  for (const encrypted of [pkcs8, sec1]) {
    refuses('key', /encrypted with a passphrase.*openssl pkey/, leaf.certificatePem, encrypted)
  }
  const [, secret = ''] = leaf.privateKeyPem.split('\n')
  const broken = [
    leaf.privateKeyPem.replace(secret, `${secret.slice(1)}`),
    block('PRIVATE KEY', secret),
    block('OPENSSH PRIVATE KEY', secret),
    leaf.privateKeyPem + root.privateKeyPem,
    secret,
    '',
    leaf.certificatePem,
  ]
  for (const text of broken) {
    const error = refuses('key', /private key/, leaf.certificatePem, text)
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      assert.ok(!`${at.message}${at.stack}`.includes(secret.slice(8, 24)), at.stack)
    }
  }
})

test('refuses text that is not a certificate, too many certificates, or a key among them', () => {
  const { certificatePem, privateKeyPem } = leaf
  refuses('certificate', /There is no certificate/, 'nonsense', privateKeyPem)
  refuses('certificate', /cannot be read/, certificatePem.replace(/MII./, 'MIIX'), privateKeyPem)
  refuses('certificate', /belongs in `private_key_pem`/, certificatePem + privateKeyPem, privateKeyPem)
  refuses('certificate', /At most 10/, certificatePem.repeat(11), privateKeyPem)
})

test('a changed byte in a certificate gives a result or a BadTlsCertificate, never anything else', async () => {
  const { certificatePem, privateKeyPem } = await makeIdentity({ dnsNames: ['a.example.com'], ips: ['::1'] })
  const { raw } = new X509Certificate(certificatePem)
  const change = fc.record({ at: fc.nat(raw.length - 1), value: fc.nat(255) })
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
      const der = Buffer.from(raw)
      for (const { at, value } of changes) der[at] = value
      try {
        readTlsCertificate(block('CERTIFICATE', der.toString('base64')), privateKeyPem)
      } catch (error) {
        assert.ok(error instanceof BadTlsCertificate, String(error))
      }
    }),
    { numRuns: 500 },
  )
})

function block(label: string, body: string): string {
  return `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`
}

function refuses(part: BadTlsCertificate['part'], message: RegExp, certificatePem: string, keyPem: string): Error {
  try {
    readTlsCertificate(certificatePem, keyPem)
  } catch (error) {
    assert.ok(error instanceof BadTlsCertificate, String(error))
    assert.match(error.message, message)
    assert.equal(error.part, part, error.message)
    return error
  }
  return assert.fail(`expected a refusal that matches ${message}`)
}
