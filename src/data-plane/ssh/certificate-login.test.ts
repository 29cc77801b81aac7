import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import {
  makeSshCertificate,
  type SshCertificateFacts,
  sshCertificateDigest,
} from '../../lib/ssh-keys/ssh-certificate.ts'
import { blobType } from '../../lib/ssh-keys/ssh-key-blob.ts'
import { publicBlobOf, signSsh } from '../../lib/ssh-keys/ssh-signature.ts'
import { sshStrings } from '../../lib/ssh-keys/ssh-wire.ts'
import { type AgentCredential, BindRefusal } from '../tunnel/interfaces.ts'
import { type Entry, entryBy } from './certificate-login.ts'
import { isCertificate, isProven, isUsable, type KeyOffer } from './proof.ts'
import type { SshUserCertificate } from './ssh-context.ts'

const NOW = Date.parse('2026-06-01T12:00:00Z')
const MINE: AgentCredential = { id: 'sshcr_mine', acl: ['bind:mine.example.com'] }
const SIGNED = Buffer.from('this very login')

const keys: Readonly<Record<string, KeyObject>> = {
  'ssh-ed25519': generateKeyPairSync('ed25519').privateKey,
  'ecdsa-sha2-nistp256': generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-sha2-nistp384': generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-sha2-nistp521': generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  'rsa-sha2-512': generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}
const authority = generateKeyPairSync('ed25519').privateKey
const holder = keys['ssh-ed25519'] as KeyObject // stands above

const usual: SshCertificateFacts = {
  kind: 'user',
  serial: 1n,
  keyId: 'sucrt_1',
  principals: [MINE.id],
  validAfter: BigInt(NOW / 1000 - 60),
  validBefore: BigInt(NOW / 1000 + 60),
  criticalOptions: {},
  extensions: {},
}

const issued = new Map<string, SshUserCertificate>()
const present = new Map<string, AgentCredential>()
beforeEach(() => {
  issued.clear()
  present.clear()
  present.set(MINE.id, MINE)
})
const listener = {
  now: () => NOW,
  credentials: {
    find: async () => undefined,
    certificate: async (digest: string) => issued.get(digest),
  },
  online: { currentCredential: async (id: string) => present.get(id) },
}

interface Making {
  readonly key?: KeyObject
  readonly by?: KeyObject
  /** The authority with which the certificate is stored; by default the one that signed it. */
  readonly storedBy?: KeyObject | null
}

async function certificate(
  facts: Partial<SshCertificateFacts> = {},
  { key = holder, by = authority, storedBy = by }: Making = {},
): Promise<Buffer> {
  const blob = await makeSshCertificate(
    publicBlobOf(key),
    { ...usual, ...facts },
    {
      authority: by,
      nonce: randomBytes(32),
    },
  )
  if (storedBy) issued.set(sshCertificateDigest(blob), { id: 'sucrt_1', authorityBlob: publicBlobOf(storedBy) })
  return blob
}

async function offerOf(blob: Buffer, key = holder, type = blobType(blob)): Promise<KeyOffer> {
  const signature = await signSsh(key, publicBlobOf(key), SIGNED)
  return { type, blob, hash: undefined, proof: { signature, signed: SIGNED } }
}

/** The gateway's decision about an offer; undefined when the offer proves nothing. */
async function login(offer: KeyOffer, { user = 'me', ip = '10.1.2.3' } = {}): Promise<Entry | BindRefusal | undefined> {
  if (!isUsable(offer) || !isProven(offer) || !isCertificate(offer)) return undefined
  return entryBy({ blob: offer.blob, user, ip }, listener)
}

async function assertIn(offer: KeyOffer, options: Parameters<typeof login>[1] = {}): Promise<Entry> {
  const entry = await login(offer, options)
  assert.ok(!(entry instanceof BindRefusal), entry instanceof BindRefusal ? entry.message : '')
  assert.ok(entry, 'it proved nothing')
  return entry
}

async function assertOut(offer: KeyOffer, says: RegExp, options: Parameters<typeof login>[1] = {}): Promise<void> {
  const entry = await login(offer, options)
  assert.ok(entry instanceof BindRefusal, 'it was let in')
  assert.match(entry.message, says)
}

for (const [algorithm, key] of Object.entries(keys)) {
  test(`a certificate of a key that signs with ${algorithm} opens the gateway as the credential that it names`, async () => {
    const blob = await certificate({}, { key })
    const entry = await assertIn(await offerOf(blob, key, `${algorithm}-cert-v01@openssh.com`))
    assert.deepEqual(entry.credential, MINE)
    assert.deepEqual(entry.certificate, { id: 'sucrt_1', digest: sshCertificateDigest(blob) })
    assert.equal(entry.forced, undefined)
  })
}

test('a client without the certified key proves nothing', async () => {
  const other = generateKeyPairSync('ed25519').privateKey
  const blob = await certificate()
  assert.equal(await login(await offerOf(blob, other)), undefined)
  const offer = await offerOf(blob)
  assert.ok(offer.proof)
  assert.equal(await login({ ...offer, proof: { ...offer.proof, signed: Buffer.from('another login') } }), undefined)
  assert.equal(await login({ ...offer, proof: undefined }), undefined)
  // A proof by the authority's key, which signs certificates but must not log in.
  assert.equal(await login(await offerOf(blob, authority)), undefined)
})

test('RSA certificates prove nothing with SHA-1, nor with another hash than the one announced', async () => {
  const key = keys['rsa-sha2-512'] as KeyObject // stands above
  const blob = await certificate({}, { key })
  const sha1 = { signature: sshStrings('ssh-rsa', sign('sha1', SIGNED, key)), signed: SIGNED }
  for (const type of ['ssh-rsa-cert-v01@openssh.com', 'rsa-sha2-512-cert-v01@openssh.com']) {
    assert.equal(await login({ type, blob, hash: 'sha512', proof: sha1 }), undefined, type)
  }
  assert.equal(await login(await offerOf(blob, key, 'rsa-sha2-256-cert-v01@openssh.com')), undefined)
})

test('a certificate is not accepted as another type of key, nor as a plain key', async () => {
  const blob = await certificate()
  for (const type of [
    'ecdsa-sha2-nistp256-cert-v01@openssh.com',
    'rsa-sha2-512-cert-v01@openssh.com',
    'ssh-ed25519',
    'constructor-cert-v01@openssh.com',
    '-cert-v01@openssh.com',
  ]) {
    assert.equal(await login(await offerOf(blob, holder, type)), undefined, type)
  }
  const plain = publicBlobOf(holder)
  assert.equal(await login(await offerOf(plain, holder, 'ssh-ed25519-cert-v01@openssh.com')), undefined)
})

test('a certificate with any bit changed is refused', async () => {
  const blob = await certificate()
  const offer = await offerOf(blob)
  await assertIn(offer)
  for (let bit = 0; bit < blob.length * 8; bit++) {
    const changed = Buffer.from(blob)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    const entry = await login({ ...offer, blob: changed })
    assert.ok(entry === undefined || entry instanceof BindRefusal, `bit ${bit}`)
  }
})

test('a certificate of an unknown authority, or of another one than it is stored with, is refused', async () => {
  const foreign = generateKeyPairSync('ed25519').privateKey
  await assertOut(await offerOf(await certificate({}, { by: foreign, storedBy: null })), /issued this certificate/)
  await assertOut(await offerOf(await certificate({}, { by: foreign, storedBy: authority })), /issued this certificate/)
})

test('a deleted certificate is refused', async () => {
  const offer = await offerOf(await certificate())
  await assertIn(offer)
  issued.clear()
  await assertOut(offer, /deleted/)
})

const kept: [what: string, facts: Partial<SshCertificateFacts>, says: RegExp][] = [
  ['is for a host', { kind: 'host' }, /host/],
  ['has expired', { validBefore: BigInt(NOW / 1000) }, /expired/],
  ['is not valid yet', { validAfter: BigInt(NOW / 1000 + 1) }, /not valid yet/],
  ['names nobody', { principals: [] }, /names no SSH credential/],
  ['names other users alone', { principals: ['root', 'me'] }, /names no SSH credential/],
  ['names a credential that is gone', { principals: ['sshcr_gone'] }, /`sshcr_gone`/],
  ['names several credentials', { principals: ['sshcr_other', MINE.id] }, /ssh -l sshcr_other/],
  ['has an option that nobody knows', { criticalOptions: { 'a@b.c': '' } }, /critical option/],
  ['has an option that is not ours', { criticalOptions: { 'verify-required': '' } }, /critical option/],
  ['is for other addresses', { criticalOptions: { 'source-address': '10.2.0.0/16,::1' } }, /address/],
  ['is for addresses that cannot be read', { criticalOptions: { 'source-address': '10.1.2.3/8' } }, /address/],
  ['is for no address', { criticalOptions: { 'source-address': '' } }, /address/],
]
for (const [what, facts, says] of kept) {
  test(`a certificate that ${what} is refused`, async () => {
    await assertOut(await offerOf(await certificate(facts)), says)
  })
}

test('a certificate for the key of its own authority is refused', async () => {
  await assertOut(await offerOf(await certificate({}, { key: authority }), authority), /own authority/)
})

test('validity is checked to the second', async () => {
  const second = BigInt(NOW / 1000)
  await assertIn(await offerOf(await certificate({ validAfter: second, validBefore: second + 1n })))
  await assertIn(await offerOf(await certificate({ validAfter: 0n, validBefore: 2n ** 64n - 1n })))
})

test('the source addresses of a certificate may be networks or single addresses, of both families', async () => {
  const blob = await certificate({ criticalOptions: { 'source-address': '192.0.2.7,10.1.0.0/16,2001:db8::/32' } })
  for (const ip of ['10.1.2.3', '192.0.2.7', '2001:db8::1', '::ffff:10.1.2.3'])
    await assertIn(await offerOf(blob), { ip })
  for (const ip of ['10.2.0.1', '192.0.2.8', '2001:db9::1']) await assertOut(await offerOf(blob), /address/, { ip })
})

test('among several credentials the client chooses by its user name, if the certificate names it', async () => {
  present.set('sshcr_other', { id: 'sshcr_other', acl: [] })
  present.set('sshcr_third', { id: 'sshcr_third', acl: [] })
  const offer = await offerOf(await certificate({ principals: ['sshcr_other', 'root', MINE.id] }))
  for (const user of ['sshcr_other', MINE.id]) assert.equal((await assertIn(offer, { user })).credential.id, user)
  await assertOut(offer, /`sshcr_third`/, { user: 'sshcr_third' })
  const single = await offerOf(await certificate({ principals: [MINE.id, MINE.id] }))
  assert.equal((await assertIn(single)).credential.id, MINE.id)
  await assertOut(single, /`sshcr_other`/, { user: 'sshcr_other' })
})

test('a forced command is passed on', async () => {
  const offer = await offerOf(await certificate({ criticalOptions: { 'force-command': 'http --help' } }))
  assert.equal((await assertIn(offer)).forced, 'http --help')
})
