/** For tests: a client that has exchanged keys, and from there on sends whatever messages a test wants. */
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import type { Client } from 'ssh2'
import { blobOf } from '../../../lib/ssh-keys/ssh-key-blob.ts'
import { fingerprintOf } from '../../../lib/ssh-keys/ssh-public-key.ts'
import { until } from '../../tunnel/testing/test-agent-listener.ts'
import { TestClient, type TestGateway } from './test-gateway.ts'

/** RFC 4250 §4.1.2. */
export const messages = {
  disconnect: 1,
  ignore: 2,
  serviceRequest: 5,
  kexInit: 20,
  newKeys: 21,
  authRequest: 50,
  authFailure: 51,
  authSuccess: 52,
  keyOk: 60,
  globalRequest: 80,
  requestSuccess: 81,
  requestFailure: 82,
  channelOpen: 90,
  channelOpened: 91,
  channelRefused: 92,
  windowAdjust: 93,
  channelData: 94,
  channelEnd: 96,
  channelClose: 97,
  channelRequest: 98,
  channelSuccess: 99,
  channelFailure: 100,
} as const

export interface SigningKey {
  /** The public key in wire form. */
  readonly blob: Buffer
  readonly sign: (data: Buffer, hash?: string | null) => Buffer
}

export class RawClient {
  readonly ssh: Client
  readonly closed: Promise<void>
  /** The payloads that the server has sent since the key exchange, the oldest first. */
  readonly heard: Buffer[] = []
  /** The signature algorithms that the server says it accepts. */
  signatures: readonly string[] | undefined

  private constructor(client: TestClient) {
    this.ssh = client.ssh
    this.closed = client.closed
  }

  static async atLogin(port: number, { algorithms = {}, from }: RawOptions = {}): Promise<RawClient> {
    const client = new TestClient(port)
    const raw = new RawClient(client)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    void client.closed.then(() => reject(client.error ?? new Error('it was not let as far as its login')))
    const options = { host: '127.0.0.1', port, username: 'v2', password: 'asks', algorithms, localAddress: from }
    client.ssh.connect({ ...options, authHandler: () => resolve(), readyTimeout: 0 })
    client.ssh._sock.setNoDelay()
    client.ssh._protocol._handlers.EXT_INFO = (_protocol, extensions) => {
      raw.signatures = extensions.find(({ name }) => name === 'server-sig-algs')?.algs
    }
    await promise
    const { _decipher: decipher } = client.ssh._protocol
    // The library must not hear of these messages: it would act on them itself.
    decipher._onPayload = (payload) => void raw.heard.push(Buffer.from(payload))
    return raw
  }

  /** Logged in with a key of its own. */
  static async online(gateway: Reached): Promise<RawClient> {
    const raw = await RawClient.atLogin(gateway.port)
    const key = makeKey()
    gateway.credentials.set(fingerprintOf(key.blob), { id: 'sshcr_raw', acl: [] })
    const login = keyLogin(raw, { blob: key.blob, algorithm: 'ssh-ed25519', signer: key.sign })
    assert.equal(await raw.login(login), messages.authSuccess)
    return raw
  }

  /** With a forward of this name, and its command in a terminal that is the client's channel 0. */
  static async serving(gateway: Reached, name = 'raw.example.test'): Promise<RawClient> {
    const raw = await RawClient.online(gateway)
    const terminal = await raw.openTerminal(0)
    raw.send(message(messages.channelRequest, terminal, 'exec', false, 'http'))
    raw.send(message(messages.globalRequest, 'tcpip-forward', true, name, 443))
    await until(() => raw.answers(messages.requestSuccess).length === 1)
    return raw
  }

  /** Returns the number that the server gave the channel. */
  async openTerminal(own: number, { window = 1_000_000, packet = 32_000 } = {}): Promise<number> {
    const known = this.answers(messages.channelOpened).length
    this.send(message(messages.channelOpen, 'session', own, window, packet))
    await until(() => this.answers(messages.channelOpened).length > known)
    return this.answers(messages.channelOpened)[known]?.readUInt32BE(5) ?? -1
  }

  get sessionId(): Buffer {
    return this.ssh._protocol._kex.sessionID
  }

  get isClosed(): boolean {
    return this.ssh._sock.destroyed || this.ssh._sock.readableEnded
  }

  send(payload: Buffer): void {
    sendPayload(this.ssh, payload)
  }

  /** The received payloads of these message types. */
  answers(...types: readonly number[]): Buffer[] {
    return this.heard.filter(([type = 0]) => types.includes(type))
  }

  /** Sends, and resolves with the type of the first answer to a login; 0 when the connection was closed instead. */
  async login(payload: Buffer): Promise<number> {
    const { authFailure, authSuccess, keyOk } = messages
    const known = this.answers(authFailure, authSuccess, keyOk).length
    this.send(payload)
    const answer = (): number | undefined => this.answers(authFailure, authSuccess, keyOk)[known]?.[0]
    await until(() => answer() !== undefined || this.isClosed)
    return answer() ?? 0
  }

  leave(): void {
    this.ssh._sock.destroy()
  }
}

/** A gateway by its credentials, and the port where it is reached. */
type Reached = Pick<TestGateway, 'port' | 'credentials'>

interface RawOptions {
  readonly algorithms?: Readonly<Record<string, readonly string[]>>
  /** The address it connects from. */
  readonly from?: string | undefined
}

/** Sends one message as it is, with whatever cipher the connection has. */
function sendPayload({ _protocol: protocol }: Client, payload: Buffer): void {
  const { _packetRW: packets, _cipher: cipher } = protocol
  const packet = packets.write.alloc(payload.length, true)
  packet.set(payload, packets.write.allocStartKEX)
  cipher.encrypt(packets.write.finalize(packet, true))
}

export function message(type: number, ...parts: readonly (Buffer | string | number | boolean)[]): Buffer {
  return Buffer.concat([Buffer.of(type), ...parts.map(part)])
}

/** Bytes with their length in front. */
export function sized(bytes: Buffer): Buffer {
  return Buffer.concat([uint32(bytes.length), bytes])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Buffers are written as SSH strings too; concatenate to write plain bytes. */
function part(value: Buffer | string | number | boolean): Buffer {
  if (typeof value === 'number') return uint32(value)
  if (typeof value === 'boolean') return Buffer.of(value ? 1 : 0)
  return sized(Buffer.from(value))
}

/** A login with a key: asks whether it would be accepted, or proves it with `signer`. */
export function keyLogin(
  { sessionId }: { readonly sessionId: Buffer },
  { blob, algorithm, signer, signedAs = algorithm, user = 'v2' }: KeyLogin,
): Buffer {
  const head = message(messages.authRequest, user, 'ssh-connection', 'publickey', signer !== undefined, algorithm, blob)
  if (!signer) return head
  const signature = signer(Buffer.concat([sized(sessionId), head]))
  return Buffer.concat([head, sized(Buffer.concat([sized(Buffer.from(signedAs)), sized(signature)]))])
}

interface KeyLogin {
  readonly blob: Buffer
  readonly algorithm: string
  /** Absent when the client only asks. */
  readonly signer?: ((data: Buffer) => Buffer) | undefined
  /** The name of its signature algorithm. */
  readonly signedAs?: string
  readonly user?: string
}

/** The first message of a key exchange: for each kind of algorithm one name, or several with commas. */
export function kexInit({
  kex = 'curve25519-sha256',
  hostKey = 'ssh-ed25519',
  cipher = 'aes128-gcm@openssh.com',
  mac = 'hmac-sha2-256',
  compression = 'none',
  isFollowed = false,
} = {}): Buffer {
  const both = [cipher, mac, compression, ''].flatMap((list) => [list, list])
  const lists = [kex, hostKey, ...both].map((list) => sized(Buffer.from(list)))
  return Buffer.concat([
    Buffer.of(messages.kexInit),
    Buffer.alloc(16),
    ...lists,
    Buffer.of(isFollowed ? 1 : 0),
    Buffer.alloc(4),
  ])
}

type KeyKind = 'ed25519' | 'rsa'

/** A key that can sign, with SHA-512 where the key type does not define a hash. */
export function makeKey(kind: KeyKind = 'ed25519'): SigningKey {
  const { publicKey, privateKey } =
    kind === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync('ed25519')
  const blob = blobOf(publicKey)
  if (!blob) throw new Error(`there is no wire form of ${kind}`)
  return { blob, sign: (data, hash = kind === 'rsa' ? 'sha512' : null) => sign(hash, data, privateKey) }
}
