/** Plaintext handshakes: weak algorithms are refused, and no message can be slipped in. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { TestGateway } from './testing/test-gateway.ts'
import { kexInit, message, messages, RawClient, sized, uint32 } from './testing/test-raw.ts'

const KEX_REPLY = 31
/** RFC 4253 §11.1. */
const KEY_EXCHANGE_FAILED = 3
const STRICT = 'kex-strict-c-v00@openssh.com'

let gateway: TestGateway
before(async () => {
  gateway = await new TestGateway({ limits: { failuresPerMinute: 1_000_000 } }).listen()
})
after(() => gateway.close())

/** Sends an identification line and these payloads; resolves with the server's messages once it closes or answers. */
async function shakeHands(...payloads: readonly Buffer[]): Promise<readonly Buffer[]> {
  const socket = opened()
  const heard: Buffer[] = []
  socket.on('data', (chunk: Buffer) => heard.push(chunk))
  for (const payload of payloads) socket.write(packet(payload))
  const said = (): Buffer[] => packetsIn(Buffer.concat(heard))
  await until(() => socket.closed || said().some(([type]) => type === KEX_REPLY))
  socket.destroy()
  return said()
}

function opened(): Socket {
  const socket = connect({ port: gateway.port, host: '127.0.0.1', noDelay: true }).on('error', () => {})
  socket.write('SSH-2.0-raw\r\n')
  return socket
}

function isAgreed(said: readonly Buffer[]): boolean {
  return said.some(([type]) => type === KEX_REPLY)
}

/** Checks that the server gave the reason, and sent nothing more. */
function assertRefused(said: readonly Buffer[]): void {
  const [, last, ...more] = said
  assert.equal(said[0]?.[0], messages.kexInit)
  assert.deepEqual([last?.[0], last?.readUInt32BE(1), more.length], [messages.disconnect, KEY_EXCHANGE_FAILED, 0])
}

const good = [
  ['the usual', {}],
  ['AES in counter mode with SHA-2', { cipher: 'aes256-ctr', mac: 'hmac-sha2-512-etm@openssh.com' }],
  [
    'weak names behind good ones',
    { kex: 'curve25519-sha256,diffie-hellman-group1-sha1', cipher: 'aes128-ctr,3des-cbc' },
  ],
] as const
for (const [what, offer] of good) {
  test(`${what} is agreed on`, async () => {
    assert.ok(isAgreed(await shakeHands(kexInit(offer), exchangeKeys())))
  })
}

const CTR = 'aes128-ctr'
const weak: readonly [what: string, offers: Parameters<typeof kexInit>[0][]][] = [
  [
    'a key exchange with SHA-1',
    ['diffie-hellman-group1-sha1', 'diffie-hellman-group14-sha1', 'diffie-hellman-group-exchange-sha1'].map((kex) => ({
      kex,
    })),
  ],
  ['a key exchange that is none', ['', 'none', 'ext-info-c', STRICT].map((kex) => ({ kex }))],
  ['a host key with SHA-1 or DSA', ['ssh-rsa', 'ssh-dss'].map((hostKey) => ({ hostKey }))],
  ['CBC', ['aes128-cbc', 'aes192-cbc', 'aes256-cbc', '3des-cbc', 'blowfish-cbc'].map((cipher) => ({ cipher }))],
  ['RC4, or no cipher', ['arcfour', 'arcfour256', 'none', ''].map((cipher) => ({ cipher }))],
  ['a MAC with SHA-1', ['hmac-sha1', 'hmac-sha1-96', 'hmac-sha1-etm@openssh.com'].map((mac) => ({ cipher: CTR, mac }))],
  ['a MAC with MD5, or none', ['hmac-md5', 'hmac-md5-96', 'none', ''].map((mac) => ({ cipher: CTR, mac }))],
  ['compression', ['zlib', 'zlib@openssh.com'].map((compression) => ({ compression }))],
]
for (const [what, offers] of weak) {
  test(`${what} is refused: ${offers.map((offer) => Object.values(offer ?? {}).join(' ')).join(', ')}`, async () => {
    for (const offer of offers) assertRefused(await shakeHands(kexInit(offer), exchangeKeys()))
  })
}

// Guesses (RFC 4253 §7).

test('a packet sent on a right guess counts, as dropbear expects', async () => {
  assert.ok(isAgreed(await shakeHands(kexInit({ isFollowed: true }), exchangeKeys())))
})

test('a packet sent on a wrong guess is ignored, and the next one counts', async () => {
  for (const offer of [{ kex: 'sntrup761x25519-sha512,curve25519-sha256' }, { hostKey: 'rsa-sha2-512,ssh-ed25519' }]) {
    const guess = message(30, 'a guess')
    assert.ok(isAgreed(await shakeHands(kexInit({ ...offer, isFollowed: true }), guess, exchangeKeys())))
    assert.ok(!isAgreed(await shakeHands(kexInit(offer), guess, exchangeKeys())), 'it was announced')
  }
})

// Strict key exchange, against CVE-2023-48795 (openssh/PROTOCOL §1.10).

const strict = { kex: `curve25519-sha256,${STRICT}` }
const ignored = message(messages.ignore, 'slipped in')

test('the server announces strict key exchange, and offers no weak algorithm', async () => {
  const [offer = Buffer.alloc(0)] = await shakeHands(kexInit(), exchangeKeys())
  const text = offer.toString('latin1')
  assert.match(text, /kex-strict-s-v00@openssh\.com/)
  assert.doesNotMatch(text, /sha1|cbc|dss|md5|zlib|arcfour|chacha20/)
})

test('a message before the offer ends a strict handshake, but not one that is not strict', async () => {
  assert.ok(!isAgreed(await shakeHands(ignored, kexInit(strict), exchangeKeys())))
  assert.ok(isAgreed(await shakeHands(ignored, kexInit(), exchangeKeys())))
})

test('a message after the offer ends a strict handshake, but not one that is not strict', async () => {
  for (const between of [ignored, message(3, 0), Buffer.concat([Buffer.of(4, 0), sized(ignored), sized(ignored)])]) {
    assert.ok(!isAgreed(await shakeHands(kexInit(strict), between, exchangeKeys())))
    assert.ok(isAgreed(await shakeHands(kexInit(), between, exchangeKeys())))
  }
})

test('a plaintext login during the handshake ends the connection', async () => {
  const login = message(messages.authRequest, 'v2', 'ssh-connection', 'none')
  assert.ok(!isAgreed(await shakeHands(login, kexInit(), exchangeKeys())))
  assert.ok(!isAgreed(await shakeHands(kexInit(), login, exchangeKeys())))
})

test('after a strict handshake the packet counter, which the MAC covers, starts again at zero', async () => {
  const client = gateway.client()
  await client.login({ algorithms: { cipher: [CTR], hmac: ['hmac-sha2-256'] } })
  await client.leave()
})

// The sizes of packets.

for (const length of [0, 1, 4, 35_001, 0x00ffffff, 0x7fffffff, 0x80000000, 0xffffffff]) {
  test(`a packet that says it has ${length} bytes ends the connection before they come`, async () => {
    const socket = opened()
    socket.resume()
    socket.write(uint32(length))
    socket.write(Buffer.alloc(64))
    await until(() => socket.closed)
  })
}

for (const [cipher, mac] of [
  ['aes128-gcm@openssh.com', 'hmac-sha2-256'],
  [CTR, 'hmac-sha2-256-etm@openssh.com'],
] as const) {
  test(`and also with ${cipher}`, async () => {
    for (const length of [0, 35_001, 0x00fffff0, 0xfffffff0]) {
      const raw = await RawClient.atLogin(gateway.port, { algorithms: { cipher: [cipher], hmac: [mac] } })
      raw.ssh._sock.write(uint32(length))
      raw.ssh._sock.write(Buffer.alloc(64))
      await raw.closed
    }
  })
}

test('an endless identification line ends the connection', async () => {
  const socket = connect({ port: gateway.port, host: '127.0.0.1' }).on('error', () => {})
  socket.resume()
  socket.write(`SSH-2.0-${'x'.repeat(10_000)}`)
  await until(() => socket.closed)
})

/** The first message of an ECDH exchange, with a public key. */
function exchangeKeys(): Buffer {
  const { x = '' } = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  return message(30, Buffer.from(x, 'base64url'))
}

/** RFC 4253 §6, without a cipher. */
function packet(payload: Buffer): Buffer {
  const padding = 4 + ((8 - ((payload.length + 9) % 8)) % 8)
  return Buffer.concat([uint32(payload.length + padding + 1), Buffer.of(padding), payload, Buffer.alloc(padding)])
}

/** The payloads of plaintext packets, after the server's identification line. */
function packetsIn(bytes: Buffer): Buffer[] {
  const payloads: Buffer[] = []
  let at = bytes.indexOf('\n') + 1
  while (at > 0 && at + 5 <= bytes.length) {
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) break
    payloads.push(bytes.subarray(at + 5, end - (bytes[at + 4] ?? 0)))
    at = end
  }
  return payloads
}
