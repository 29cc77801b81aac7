import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { test } from 'node:test'
import {
  makeSshCertificate,
  type SshCertificateFacts,
  sshCertificateDigest,
} from '../../lib/ssh-keys/ssh-certificate.ts'
import { blobType } from '../../lib/ssh-keys/ssh-key-blob.ts'
import { publicBlobOf, signSsh } from '../../lib/ssh-keys/ssh-signature.ts'
import { sshStrings } from '../../lib/ssh-keys/ssh-wire.ts'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { gatewayStarter, type TestGateway, theSession } from './testing/test-gateway.ts'

const start = gatewayStarter()

const authority = generateKeyPairSync('ed25519').privateKey
const holder = generateKeyPairSync('ed25519').privateKey
const USERAUTH_REQUEST = 50

async function certificate(
  gateway: TestGateway,
  facts: Partial<SshCertificateFacts> = {},
  key: KeyObject = holder,
): Promise<Buffer> {
  const whole: SshCertificateFacts = {
    kind: 'user',
    serial: 1n,
    keyId: 'sucrt_test',
    principals: ['sshcr_test'],
    validAfter: 0n,
    validBefore: 2n ** 64n - 1n,
    criticalOptions: {},
    extensions: {},
    ...facts,
  }
  const blob = await makeSshCertificate(publicBlobOf(key), whole, { authority, nonce: randomBytes(32) })
  gateway.certificates.set(sshCertificateDigest(blob), { id: 'sucrt_test', authorityBlob: publicBlobOf(authority) })
  return blob
}

type Signing = (data: Buffer) => Promise<Buffer>
const held: Signing = (data) => signSsh(holder, publicBlobOf(holder), data)

/** Sends a login as it is, which no library would send; `in` when it succeeds. */
async function login(
  gateway: TestGateway,
  blob: Buffer,
  { type = blobType(blob), proof = held }: { type?: string; proof?: Signing } = {},
): Promise<'in' | 'out'> {
  const client = gateway.client()
  const send = async (): Promise<void> => {
    const { _protocol: protocol } = client.ssh
    const payload = Buffer.concat([
      Buffer.of(USERAUTH_REQUEST),
      sshStrings('v2', 'ssh-connection', 'publickey'),
      Buffer.of(1),
      sshStrings(type, blob),
    ])
    const signature = await proof(Buffer.concat([sshStrings(protocol._kex.sessionID), payload]))
    const all = Buffer.concat([payload, sshStrings(signature)])
    protocol._authsQueue.push('publickey')
    const { write } = protocol._packetRW
    const packet = write.alloc(all.length)
    packet.set(all, write.allocStart)
    protocol._cipher.encrypt(write.finalize(packet))
  }
  const answer = Promise.withResolvers<'in' | 'out'>()
  let isSent = false
  client.ssh.once('ready', () => answer.resolve('in'))
  void client.closed.then(() => answer.resolve('out'))
  const authHandler = (): undefined => {
    // Asked again, it was refused.
    if (isSent) client.ssh.end()
    else send().catch(answer.reject)
    isSent = true
  }
  client.ssh.connect({ host: '127.0.0.1', port: gateway.port, username: 'v2', authHandler })
  return answer.promise
}

test('a session opened with a certificate belongs to its credential, and knows its certificate', async () => {
  const gateway = await start()
  assert.equal(await login(gateway, await certificate(gateway)), 'in')
  const session = theSession(gateway)
  assert.deepEqual([session.credentialId, session.certificateId], ['sshcr_test', 'sucrt_test'])
  assert.ok(gateway.logged.some(({ certificate, msg }) => certificate === 'sucrt_test' && msg === 'agent online'))
})

test('a certificate that is deleted while its holder logs in ends the session that it began', async () => {
  const gateway = await start()
  const blob = await certificate(gateway)
  const { certificates } = gateway
  const found = certificates.get(sshCertificateDigest(blob))
  let asked = 0
  certificates.get = () => (asked++ === 0 ? found : undefined)
  assert.equal(await login(gateway, blob), 'in')
  await until(() => gateway.logged.some(({ reason }) => reason === 'its SSH certificate was deleted'))
  assert.deepEqual(gateway.online.registry.liveSessions(), [])
})

test('forged logins with certificates are refused, and the gateway goes on', async () => {
  const gateway = await start()
  const other = generateKeyPairSync('ed25519').privateKey
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const good = await certificate(gateway)
  const ofRsa = await certificate(gateway, {}, rsa)
  const ofAuthority = await certificate(gateway, {}, authority)
  const signing =
    (key: KeyObject): Signing =>
    (data) =>
      signSsh(key, publicBlobOf(key), data)
  const cut = Buffer.from(good.subarray(0, -1))
  const cases: [what: string, blob: Buffer, how?: Parameters<typeof login>[2]][] = [
    ['by who does not hold the key', good, { proof: signing(other) }],
    ['by the authority', good, { proof: signing(authority) }],
    ['of the key of the authority', ofAuthority, { proof: signing(authority) }],
    ['with a signature of other bytes', good, { proof: async (data) => held(data.subarray(1)) }],
    ['without a signature', good, { proof: async () => Buffer.alloc(0) }],
    [
      'with the name of the certificate in the signature',
      good,
      {
        proof: async (data) => sshStrings('ssh-ed25519-cert-v01@openssh.com', sign(null, data, holder)),
      },
    ],
    ['as a plain key', good, { type: 'ssh-ed25519' }],
    ['of a plain key', publicBlobOf(holder), { type: 'ssh-ed25519-cert-v01@openssh.com' }],
    [
      'with SHA-1',
      ofRsa,
      {
        proof: async (data) => sshStrings('ssh-rsa', sign('sha1', data, rsa)),
      },
    ],
    ['for a host', await certificate(gateway, { kind: 'host' })],
    ['that is cut short', cut],
    ['for nobody', await certificate(gateway, { principals: [] })],
    ['of a huge list', await certificate(gateway, { principals: Array(120).fill('x'.repeat(240)) })],
    ['that is longer than any packet', Buffer.concat([good, Buffer.alloc(60_000)])],
  ]
  for (const [what, blob, how] of cases) assert.equal(await login(gateway, blob, how), 'out', what)
  assert.deepEqual(gateway.online.registry.liveSessions(), [])
  assert.equal(await login(gateway, good), 'in')
})
