/** Clients that try to get in without the key: only proofs count, not claims. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fingerprintOf } from '../../lib/ssh-keys/ssh-public-key.ts'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { sshLimits } from './ssh-limits.ts'
import { assertPrinted, gatewayStarter, serving, type TestGateway, theSession } from './testing/test-gateway.ts'
import { keyLogin, makeKey, message, messages, RawClient, type SigningKey, sized } from './testing/test-raw.ts'

const { authFailure, authSuccess, keyOk } = messages

const start = gatewayStarter()

/** Two keys that may log in, each with its own rules, and one that may not. */
const [alice, bob, mallory] = [makeKey(), makeKey(), makeKey()]
const rsa = makeKey('rsa')

async function withPeople(options: ConstructorParameters<typeof TestGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await start(options)
  gateway.credentials.set(fingerprintOf(alice.blob), { id: 'sshcr_alice', acl: ['bind:alice.example.test'] })
  gateway.credentials.set(fingerprintOf(bob.blob), { id: 'sshcr_bob', acl: ['bind:bob.example.test'] })
  gateway.credentials.set(fingerprintOf(rsa.blob), { id: 'sshcr_rsa', acl: [] })
  return gateway
}

const ED25519 = 'ssh-ed25519'

function nobodyIsIn(gateway: TestGateway): void {
  assert.deepEqual(gateway.online.registry.liveSessions(), [])
  assert.deepEqual(
    gateway.logged.filter(({ level }) => level === 'error'),
    [],
  )
}

test('a proved key is let in, which shows that these tests send correct messages', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  assert.equal(await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })), keyOk)
  assert.equal(
    await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign })),
    authSuccess,
  )
  assert.equal(theSession(gateway).credentialId, 'sshcr_alice')
  raw.leave()
})

test('RSA signs with SHA-2', async () => {
  const gateway = await withPeople()
  for (const [algorithm, hash] of [
    ['rsa-sha2-256', 'sha256'],
    ['rsa-sha2-512', 'sha512'],
  ] as const) {
    const raw = await RawClient.atLogin(gateway.port)
    assert.equal(await raw.login(keyLogin(raw, { blob: rsa.blob, algorithm })), keyOk)
    // The answer repeats the algorithm of the question (RFC 4252 §7), which some clients then sign with.
    assert.ok(raw.answers(keyOk)[0]?.includes(algorithm))
    const signer = (data: Buffer): Buffer => rsa.sign(data, hash)
    assert.equal(await raw.login(keyLogin(raw, { blob: rsa.blob, algorithm, signer })), authSuccess)
    raw.leave()
  }
})

test('clients are told the accepted signature algorithms right after the key exchange', async () => {
  const gateway = await start()
  const raw = await RawClient.atLogin(gateway.port)
  assert.deepEqual(raw.signatures, [
    'ssh-ed25519',
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'rsa-sha2-256',
    'rsa-sha2-512',
  ])
  raw.leave()
})

interface Mix {
  readonly blob: Buffer
  readonly algorithm: string
  readonly signer: (data: Buffer) => Buffer
  readonly signedAs?: string
}

const twice = (data: Buffer): Buffer => alice.sign(Buffer.concat([data, data]))
const mixes: readonly [what: string, mix: Mix][] = [
  ['the key of one, signed by another', { blob: alice.blob, algorithm: ED25519, signer: bob.sign }],
  ['the key of one, signed by a stranger', { blob: alice.blob, algorithm: ED25519, signer: mallory.sign }],
  ['the key of a stranger, signed by one who may', { blob: mallory.blob, algorithm: ED25519, signer: alice.sign }],
  ['a stranger that proves its own key', { blob: mallory.blob, algorithm: ED25519, signer: mallory.sign }],
  ['a signature over something else', { blob: alice.blob, algorithm: ED25519, signer: twice }],
  ['an empty signature', { blob: alice.blob, algorithm: ED25519, signer: () => Buffer.alloc(0) }],
  ['a signature of zeros', { blob: alice.blob, algorithm: ED25519, signer: () => Buffer.alloc(64) }],
  [
    'a key with more behind it',
    { blob: Buffer.concat([alice.blob, Buffer.of(0)]), algorithm: ED25519, signer: alice.sign },
  ],
  ['a key under the name of another kind', { blob: alice.blob, algorithm: 'rsa-sha2-512', signer: alice.sign }],
  ['a key of another kind under this name', { blob: rsa.blob, algorithm: ED25519, signer: rsa.sign }],
  ['RSA with SHA-1', { blob: rsa.blob, algorithm: 'ssh-rsa', signer: (data) => rsa.sign(data, 'sha1') }],
  [
    'RSA with SHA-1 under the name of SHA-2',
    { blob: rsa.blob, algorithm: 'rsa-sha2-256', signer: (data) => rsa.sign(data, 'sha1') },
  ],
  [
    'RSA that says SHA-2 in front and SHA-1 in its signature',
    { blob: rsa.blob, algorithm: 'rsa-sha2-256', signer: (data) => rsa.sign(data, 'sha1'), signedAs: 'ssh-rsa' },
  ],
  [
    'RSA that says one hash in front and another in its signature',
    { blob: rsa.blob, algorithm: 'rsa-sha2-256', signer: (data) => rsa.sign(data, 'sha512'), signedAs: 'rsa-sha2-512' },
  ],
  ['DSA', { blob: sized(Buffer.from('ssh-dss')), algorithm: 'ssh-dss', signer: () => Buffer.alloc(40, 1) }],
]
for (const [what, mix] of mixes) {
  test(`${what} is refused`, async () => {
    const gateway = await withPeople()
    const raw = await RawClient.atLogin(gateway.port)
    const answer = await raw.login(keyLogin(raw, mix))
    assert.ok(answer === authFailure || answer === 0, `it was answered ${answer}`)
    nobodyIsIn(gateway)
    raw.leave()
  })
}

test('a client that asks about one key and proves another is online as the other, with its rules', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  assert.equal(await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })), keyOk)
  assert.equal(await raw.login(keyLogin(raw, { blob: bob.blob, algorithm: ED25519, signer: bob.sign })), authSuccess)
  assert.equal(theSession(gateway).credentialId, 'sshcr_bob')
  raw.leave()
})

test('a client that fails with one key and proves another is online as the other', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  const forged = keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: bob.sign })
  assert.equal(await raw.login(forged), authFailure)
  assert.equal(await raw.login(keyLogin(raw, { blob: bob.blob, algorithm: ED25519, signer: bob.sign })), authSuccess)
  assert.equal(theSession(gateway).credentialId, 'sshcr_bob')
  raw.leave()
})

test('a signature of another connection proves nothing', async () => {
  const gateway = await withPeople()
  const [one, two] = [await RawClient.atLogin(gateway.port), await RawClient.atLogin(gateway.port)]
  const ofOne = keyLogin(one, { blob: alice.blob, algorithm: ED25519, signer: alice.sign })
  assert.equal(await two.login(ofOne), authFailure)
  nobodyIsIn(gateway)
  one.leave()
  two.leave()
})

test('a signature for another user proves nothing', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  const signed = keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign, user: 'xx' })
  const [head] = [message(messages.authRequest, 'xx'), message(messages.authRequest, 'v2')]
  const changed = Buffer.concat([message(messages.authRequest, 'v2'), signed.subarray(head?.length)])
  assert.equal(await raw.login(changed), authFailure)
  nobodyIsIn(gateway)
  raw.leave()
})

/** RFC 4252 §9: host-based authentication, which must not work with the key of a credential. */
function hostLogin({ sessionId }: RawClient, { blob, sign }: SigningKey): Buffer {
  const head = message(
    messages.authRequest,
    ...['v2', 'ssh-connection', 'hostbased', ED25519],
    blob,
    ...['host.example.test', 'root'],
  )
  const signature = Buffer.concat([sized(Buffer.from(ED25519)), sized(sign(Buffer.concat([sized(sessionId), head])))])
  return Buffer.concat([head, sized(signature)])
}

test('host-based authentication is refused, even with the key of a credential', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  assert.equal(await raw.login(hostLogin(raw, alice)), authFailure)
  nobodyIsIn(gateway)
  raw.leave()
})

test('a client that claims to be logged in is not', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  raw.send(message(authSuccess))
  raw.send(message(messages.globalRequest, 'tcpip-forward', true, 'alice.example.test', 443))
  raw.send(message(messages.channelOpen, 'session', 0, 100_000, 32_000))
  await until(() => raw.answers(messages.requestFailure, messages.channelRefused).length === 2)
  nobodyIsIn(gateway)
  assert.deepEqual(gateway.endpoints.addresses, [])
  raw.leave()
})

test('session messages before the login are refused, and none is acted on later', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  raw.send(message(messages.globalRequest, 'tcpip-forward', true, 'alice.example.test', 443))
  await until(() => raw.answers(messages.requestFailure).length === 1)
  await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign }))
  raw.send(message(messages.channelOpen, 'session', 0, 100_000, 32_000))
  await until(() => raw.answers(messages.channelOpened).length === 1)
  assert.deepEqual(gateway.endpoints.addresses, [])
  raw.leave()
})

test('a client that sends a second login before the first is answered breaks nothing', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  const ask = keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })
  raw.send(ask)
  raw.send(message(messages.authRequest, 'v2', 'ssh-connection', 'password', false, 'x'))
  raw.send(ask)
  await until(() => raw.answers(keyOk).length > 0)
  raw.send(ask)
  raw.send(ask)
  await until(() => raw.isClosed || raw.answers(keyOk).length > 1)
  raw.leave()
  nobodyIsIn(gateway)
  await (await serving(gateway)).client.leave()
})

test('a client that keeps asking about a key without proving it is disconnected', async () => {
  const gateway = await withPeople({ limits: { tries: 3 } })
  const raw = await RawClient.atLogin(gateway.port)
  const ask = keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })
  let asked = 0
  while ((await raw.login(ask)) !== 0) assert.ok(++asked < 20, 'it is still answered')
  await raw.closed
})

test('a client that leaves while its key is looked up leaves no session, and is sent no keep-alives', async (t) => {
  const gateway = await withPeople()
  const begun = t.mock.method(globalThis, 'setInterval')
  const raw = await RawClient.atLogin(gateway.port)
  const looked = gateway.holdLookups()
  raw.send(keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign }))
  await looked.begun
  raw.leave()
  await until(() => gateway.listener.metrics.unproven === 0)
  looked.release()
  await looked.done
  nobodyIsIn(gateway)
  assert.ok(!begun.mock.calls.some(({ arguments: [, ms] }) => ms === sshLimits.keepAliveMs))
})

test('a credential that is deleted between the question and the proof opens nothing', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  assert.equal(await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })), keyOk)
  gateway.credentials.delete(fingerprintOf(alice.blob))
  const proof = keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign })
  assert.equal(await raw.login(proof), authFailure)
  nobodyIsIn(gateway)
  raw.leave()
})

test('a credential that is deleted while its key is looked up ends the session at once', async () => {
  const gateway = await withPeople()
  const raw = await RawClient.atLogin(gateway.port)
  const looked = gateway.holdLookups()
  raw.send(keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign }))
  await looked.begun
  gateway.credentials.delete(fingerprintOf(alice.blob))
  looked.release()
  // Before the time limit for a client that asks for nothing.
  await until(() => raw.isClosed)
  nobodyIsIn(gateway)
})

test('an address that is restricted between the question and the proof is refused', async () => {
  let isAdmitted = true
  const gateway = await withPeople({ admits: () => isAdmitted })
  const raw = await RawClient.atLogin(gateway.port)
  assert.equal(await raw.login(keyLogin(raw, { blob: alice.blob, algorithm: ED25519 })), keyOk)
  isAdmitted = false
  const proof = keyLogin(raw, { blob: alice.blob, algorithm: ED25519, signer: alice.sign })
  assert.notEqual(await raw.login(proof), authSuccess)
  await raw.closed
  nobodyIsIn(gateway)
  assert.equal(gateway.listener.metrics.failures, 0, 'it is no fault of the client')
})

test('rules that change between login and forward apply to the forward', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  gateway.admit(['bind:other.example.test'])
  const forward = client.forward('app.example.test', 443).catch(() => 'refused')
  const run = await client.exec('http')
  assertPrinted(await run.printed, 316)
  assert.equal(await forward, 'refused')
  assert.deepEqual(gateway.endpoints.addresses, [])
})
