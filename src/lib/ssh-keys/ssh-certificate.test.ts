import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { test } from 'node:test'
import {
  MAX_SSH_OPTIONS,
  MAX_SSH_PRINCIPALS,
  makeSshCertificate,
  readSshCertificate,
  type SshCertificateFacts,
} from './ssh-certificate.ts'
import { fingerprintOf } from './ssh-public-key.ts'
import { isSignedSsh, publicBlobOf, signSsh } from './ssh-signature.ts'
import { sshStrings, sshUint32, sshUint64 } from './ssh-wire.ts'

const keys: Readonly<Record<string, KeyObject>> = {
  'ssh-ed25519': generateKeyPairSync('ed25519').privateKey,
  'ecdsa-sha2-nistp256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-sha2-nistp384': generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-sha2-nistp521': generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  'ssh-rsa': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}
const authority = generateKeyPairSync('ed25519').privateKey
const subject = publicBlobOf(generateKeyPairSync('ed25519').privateKey)

const facts: SshCertificateFacts = {
  kind: 'user',
  serial: 2n ** 64n - 1n,
  keyId: 'sucrt_ü',
  principals: ['alice', 'bob'],
  validAfter: 1_000_000_000n,
  validBefore: 2_000_000_000n,
  criticalOptions: { 'source-address': '10.0.0.0/8', 'force-command': 'true' },
  extensions: { 'permit-user-rc': '', 'permit-pty': '', 'note@example.com': 'hello' },
}

/** Made with `ssh-keygen` of OpenSSH 9.2. */
const VECTOR =
  'ecdsa-sha2-nistp256-cert-v01@openssh.com AAAAKGVjZHNhLXNoYTItbmlzdHAyNTYtY2VydC12MDFAb3BlbnNzaC5jb20AAAAg/WxaMVz1CF30HBe+aXog56v0RPEW9xaE6yHxvey0GDUAAAAIbmlzdHAyNTYAAABBBJIOc1/IemGdoJ7sBeY6aJFnLrxs0ZpHM1+yrqicN6GHzZteFjfGnppejgK4eCCQD/I1rmbz8sxwEaRYhSFVTbEAAAAAAAAAKgAAAAEAAAAJbWVAbGFwdG9wAAAAEAAAAAVhbGljZQAAAANib2IAAAAAaVW5AAAAAABrNuyAAAAASgAAAA1mb3JjZS1jb21tYW5kAAAADQAAAAllY2hvICJoaSIAAAAOc291cmNlLWFkZHJlc3MAAAASAAAADjEwLjAuMC4wLzgsOjoxAAAAZQAAABdwZXJtaXQtYWdlbnQtZm9yd2FyZGluZwAAAAAAAAAWcGVybWl0LXBvcnQtZm9yd2FyZGluZwAAAAAAAAAKcGVybWl0LXB0eQAAAAAAAAAOcGVybWl0LXVzZXItcmMAAAAAAAAAAAAAADMAAAALc3NoLWVkMjU1MTkAAAAgau94Usa8CB1Tma8H3GqHBdshDaor8vrCukId/yaVRCAAAABTAAAAC3NzaC1lZDI1NTE5AAAAQI7bUhwFj/Ok/LnGTM7t+WqaXRmjravFWua9nAUVPe1un+yVNIhGD40oY2tueqXYQ2JMRkfwOY6q7GA76m1f2gY='

for (const [type, key] of Object.entries(keys)) {
  for (const [authorityType, authority] of Object.entries(keys)) {
    test(`a certificate of ${type} signed by ${authorityType} reads back the same`, async () => {
      const keyBlob = publicBlobOf(key)
      const blob = await makeSshCertificate(keyBlob, facts, { authority, nonce: randomBytes(32) })
      const { criticalOptions, extensions, ...read } = readSshCertificate(blob)
      const { criticalOptions: _, extensions: __, ...made } = facts
      assert.deepEqual(read, { ...made, keyBlob, authorityBlob: publicBlobOf(authority) })
      assert.deepEqual({ ...criticalOptions }, facts.criticalOptions)
      assert.deepEqual({ ...extensions }, facts.extensions)
    })
  }
}

test('a certificate that ssh-keygen made is read', () => {
  const read = readSshCertificate(Buffer.from(VECTOR.split(' ')[1] ?? '', 'base64'))
  assert.deepEqual(
    [read.kind, read.serial, read.keyId, read.principals, read.validAfter, read.validBefore],
    ['user', 42n, 'me@laptop', ['alice', 'bob'], seconds('2026-01-01'), seconds('2027-01-01')],
  )
  assert.deepEqual(
    { ...read.criticalOptions },
    {
      'force-command': 'echo "hi"',
      'source-address': '10.0.0.0/8,::1',
    },
  )
  assert.equal(read.extensions['permit-pty'], '')
  assert.ok(!('permit-x11-forwarding' in read.extensions))
})

test('a certificate with any one bit changed is refused', async () => {
  const blob = await makeSshCertificate(subject, facts, { authority, nonce: randomBytes(32) })
  const trusted = publicBlobOf(authority)
  for (let bit = 0; bit < blob.length * 8; bit++) {
    const changed = Buffer.from(blob)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    assert.ok(!isOf(changed, trusted), `bit ${bit}`)
  }
  assert.ok(isOf(blob, trusted))
})

test('a certificate that is cut short or has trailing bytes is refused', async () => {
  const blob = await makeSshCertificate(subject, facts, { authority, nonce: randomBytes(32) })
  for (let length = 0; length < blob.length; length++) assert.throws(() => readSshCertificate(blob.subarray(0, length)))
  assert.throws(() => readSshCertificate(Buffer.concat([blob, Buffer.of(0)])), /damaged/)
})

test('malformed certificates are refused even if they are signed', async () => {
  const options = (...names: string[]) => sshStrings(...names.flatMap((name) => [name, '']))
  const cases: [what: string, part: Partial<Parts>, message: RegExp][] = [
    ['options out of order', { options: options('b', 'a') }, /damaged/],
    ['an option twice', { options: options('a', 'a') }, /damaged/],
    ['an option with more behind its value', { options: sshStrings('a', sshStrings('b', 'c')) }, /damaged/],
    ['too many options', { options: options(...numbered(MAX_SSH_OPTIONS + 1)) }, /too many options/],
    ['too many principals', { principals: sshStrings(...numbered(MAX_SSH_PRINCIPALS + 1)) }, /too many principals/],
    ['principals of half a text', { principals: sshUint32(7) }, /damaged/],
    ['a principal that is no UTF-8', { principals: sshStrings(Buffer.of(0xff)) }, /damaged/],
    ['neither a user nor a host', { kind: 3 }, /neither/],
    ['a key of another length', { key: sshStrings(Buffer.alloc(31)) }, /damaged/],
    ['an unknown type', { type: 'ssh-dss-cert-v01@openssh.com' }, /not a certificate/],
    ['the type of a plain key', { type: 'ssh-ed25519' }, /not a certificate/],
    ['a certificate of a certificate', { type: 'ssh-ed25519-cert-v01@openssh.com-cert-v01@openssh.com' }, /not a cert/],
    ['too long', { principals: sshStrings('x'.repeat(40_000)) }, /over 30720 bytes/],
  ]
  assert.ok(readSshCertificate(await raw({})))
  for (const [what, part, message] of cases) {
    const blob = await raw(part)
    assert.throws(() => readSshCertificate(blob), message, what)
  }
})

test('an authority that is itself a certificate is refused', async () => {
  const chained = await makeSshCertificate(publicBlobOf(authority), facts, { authority, nonce: randomBytes(32) })
  const blob = await raw({ authorityBlob: chained })
  assert.throws(() => readSshCertificate(blob), /damaged/)
})

test('a signature of another authority, or with SHA-1, is refused', async () => {
  const other = generateKeyPairSync('ed25519').privateKey
  const swapped = await raw({ signer: other })
  assert.throws(() => readSshCertificate(swapped), /signature/)
  const rsa = keys['ssh-rsa']
  assert.ok(rsa)
  const weak = await raw({
    authorityBlob: publicBlobOf(rsa),
    signWith: (data) => sshStrings('ssh-rsa', sign('sha1', data, rsa)),
  })
  assert.throws(() => readSshCertificate(weak), /signature/)
})

test('a certificate that would be too long is not made', async () => {
  const principals = numbered(100).map((each) => each.padEnd(400, 'x'))
  await assert.rejects(
    makeSshCertificate(subject, { ...facts, principals }, { authority, nonce: randomBytes(32) }),
    /at most 30720/,
  )
})

for (const [type, key] of Object.entries(keys)) {
  test(`signatures of ${type} are valid only for the same bytes, the same key and the given algorithm`, async () => {
    const [blob, data] = [publicBlobOf(key), Buffer.from('data')]
    // The numbers of an ECDSA signature are sometimes shorter, and then written with fewer bytes.
    for (let i = 0; i < 20; i++) assert.ok(isSignedSsh(blob, data, await signSsh(key, blob, data)))
    const signature = await signSsh(key, blob, data)
    const algorithm = type === 'ssh-rsa' ? 'rsa-sha2-512' : type
    assert.ok(isSignedSsh(blob, data, signature, { algorithm }))
    assert.ok(!isSignedSsh(blob, data, signature, { algorithm: 'rsa-sha2-256' }))
    assert.ok(!isSignedSsh(blob, Buffer.from('dato'), signature))
    assert.ok(!isSignedSsh(publicBlobOf(authority), data, signature))
    assert.ok(!isSignedSsh(blob, data, Buffer.concat([signature, Buffer.of(0)])))
    assert.ok(!isSignedSsh(blob, data, signature.subarray(1)))
  })
}

/** Whether the bytes are a certificate that `trusted` signed. */
function isOf(blob: Buffer, trusted: Buffer): boolean {
  try {
    return fingerprintOf(readSshCertificate(blob).authorityBlob) === fingerprintOf(trusted)
  } catch {
    return false
  }
}

interface Parts {
  readonly type: string
  readonly key: Buffer
  readonly kind: number
  readonly principals: Buffer
  readonly options: Buffer
  readonly authorityBlob: Buffer
  readonly signer: KeyObject
  readonly signWith: (data: Buffer) => Buffer
}

/** Assembles and signs a certificate, which may be malformed. */
async function raw(parts: Partial<Parts>): Promise<Buffer> {
  const { type = 'ssh-ed25519-cert-v01@openssh.com', key = subject.subarray(4 + 'ssh-ed25519'.length) } = parts
  const { kind = 1, principals = sshStrings('alice'), options = Buffer.alloc(0), signer = authority } = parts
  const signed = Buffer.concat([
    sshStrings(type, randomBytes(32)),
    key,
    sshUint64(1n),
    sshUint32(kind),
    sshStrings('key id', principals),
    sshUint64(0n),
    sshUint64(2n ** 64n - 1n),
    sshStrings(options, '', '', parts.authorityBlob ?? publicBlobOf(authority)),
  ])
  const signature = parts.signWith?.(signed) ?? (await signSsh(signer, publicBlobOf(signer), signed))
  return Buffer.concat([signed, sshStrings(signature)])
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i).padStart(6, '0'))
}

function seconds(date: string): bigint {
  return BigInt(Date.parse(`${date}T00:00:00Z`) / 1000)
}
