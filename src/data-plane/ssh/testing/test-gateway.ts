/** For tests: a gateway on a free port, with credentials and endpoints that tests can inspect, and clients for it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach } from 'node:test'
import ssh2, { type Channel, type Client } from 'ssh2'
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import { IdSource } from '../../../lib/ids.ts'
import { createLog } from '../../../lib/log/create-log.ts'
import { Sealer } from '../../../lib/secrets/seal.ts'
import { Secret } from '../../../lib/secrets/secret.ts'
import { makeSshHostKey } from '../../../lib/ssh-keys/ssh-host-key.ts'
import { readSshPublicKey } from '../../../lib/ssh-keys/ssh-public-key.ts'
import { DialFault } from '../../../model/dial.ts'
import type { AgentCredential } from '../../tunnel/interfaces.ts'
import { Online } from '../../tunnel/online-tunnels.ts'
import { Registry } from '../../tunnel/registry.ts'
import type { LiveSession } from '../../tunnel/session-types.ts'
import { DOMAIN, TestEndpoints } from '../../tunnel/testing/test-agent-listener.ts'
import { testControl } from '../../tunnel/testing/test-control.ts'
import type { SshUserCertificate } from '../ssh-context.ts'
import { SshListener, type SshListenerOptions } from '../ssh-listener.ts'

/** Keys as `ssh-keygen` makes them serve clients as well. */
export const clientKey = makeSshHostKey()

type GatewayOptions = ConstructorParameters<typeof TestGateway>[0]

/** For the tests of a file: starts gateways, each closed after the test that started it. */
export function gatewayStarter(): (options?: GatewayOptions) => Promise<TestGateway> {
  const running: TestGateway[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.close()))
  })
  return async (options) => {
    const gateway = await new TestGateway({ ...options, limits: { refusalMs: 50, ...options?.limits } }).listen()
    running.push(gateway)
    return gateway
  }
}

export class TestGateway {
  /** By the fingerprints of their keys. */
  readonly credentials = new Map<string, AgentCredential>()
  /** By their digests. */
  readonly certificates = new Map<string, SshUserCertificate>()
  readonly endpoints: TestEndpoints
  readonly logged: Record<string, unknown>[] = []
  readonly online: Online
  readonly listener: SshListener
  isAway = false
  port = 0
  #held: PromiseWithResolvers<void> | undefined
  #looked = () => {}
  #answered = () => {}

  constructor(options: Partial<Pick<SshListenerOptions, 'limits' | 'admits' | 'meet' | 'caps'>> = {}) {
    const destination = { write: (line: string) => this.logged.push(JSON.parse(line)) }
    const log = createLog({ level: 'debug', format: 'json', destination })
    const shared = { ids: new IdSource({ now: Date.now }), now: Date.now, log }
    const find = async (isIt: (each: AgentCredential, fingerprint: string) => boolean) => {
      if (this.isAway) throw new Error('the store is away')
      return [...this.credentials].find(([fingerprint, each]) => isIt(each, fingerprint))?.[1]
    }
    const credentials = {
      find: async (fingerprint: string) => {
        const found = await find((_each, key) => key === fingerprint)
        this.#looked()
        await this.#held?.promise
        setImmediate(() => this.#answered())
        return found
      },
      certificate: async (digest: string) => this.certificates.get(digest),
    }
    const current = (id: string) => find((each) => each.id === id)
    this.endpoints = new TestEndpoints(current)
    const control = testControl({ currentCredential: ({ id }) => current(id) })
    this.online = new Online({
      ...shared,
      control,
      registry: new Registry({ region: 'local', control }),
      endpoints: this.endpoints,
      seal: new Sealer(randomBytes(32)),
      random: randomBytes,
      domain: DOMAIN,
      tcpPorts: { from: 20_000, to: 20_009 },
      publicPorts: () => ({ http: 8080, https: 8443 }),
    })
    const hostKey = new Secret(makeSshHostKey().privateText)
    this.listener = new SshListener({ ...shared, ...options, online: this.online, hostKey, credentials })
    this.admit([])
  }

  /** Gives the key of the tests a credential with these rules. */
  admit(acl: readonly string[], id = 'sshcr_test'): void {
    this.credentials.set(readSshPublicKey(clientKey.publicLine).fingerprint, { id, acl })
  }

  /** Makes the next lookup of a key wait with its result until it is released. */
  holdLookups(): { readonly begun: Promise<void>; readonly done: Promise<void>; release(): void } {
    const held = Promise.withResolvers<void>()
    this.#held = held
    return {
      begun: new Promise((resolve) => {
        this.#looked = resolve
      }),
      done: new Promise((resolve) => {
        this.#answered = resolve
      }),
      release: () => {
        this.#held = undefined
        held.resolve()
      },
    }
  }

  async listen(): Promise<this> {
    this.port = (await this.listener.listen({ host: '127.0.0.1', port: 0 })).port
    return this
  }

  async close(): Promise<void> {
    this.listener.stop()
    this.online.endAll('the server is stopping')
    await this.listener.closed()
  }

  client(): TestClient {
    return new TestClient(this.port)
  }
}

/** What a client was told by the end of its command. */
interface Printed {
  readonly out: string
  readonly err: string
  readonly status: number | undefined
}

export class TestClient {
  readonly ssh: Client
  readonly closed: Promise<void>
  /** The first error of the connection, such as the text of a disconnect. */
  error: Error | undefined
  readonly #port: number

  constructor(port: number) {
    this.#port = port
    this.ssh = new ssh2.Client()
    this.closed = new Promise((resolve) => this.ssh.once('close', () => resolve()))
    this.ssh.on('error', (error: Error) => {
      this.error ??= error
    })
  }

  async login(overrides: Partial<Parameters<Client['connect']>[0]> = {}): Promise<this> {
    const ready = new Promise<void>((resolve, reject) => {
      this.ssh.once('ready', resolve)
      this.ssh.once('close', () => reject(this.error ?? new Error('it was not let in')))
    })
    const privateKey = clientKey.privateText
    this.ssh.connect({ host: '127.0.0.1', port: this.#port, username: 'v2', privateKey, ...overrides })
    // Each packet is written in three pieces.
    this.ssh._sock.setNoDelay()
    await ready
    return this
  }

  forward(address: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.ssh.forwardIn(address, port, (error, chosen) => (error ? reject(error) : resolve(chosen)))
    })
  }

  cancel(address: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.ssh.unforwardIn(address, port, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Runs a command; `told` resolves when it is over. */
  exec(command: string, { pty = false } = {}): Promise<RunningCommand> {
    return new Promise((resolve, reject) => {
      this.ssh.exec(command, { pty }, (error, channel) =>
        error ? reject(error) : resolve(new RunningCommand(channel)),
      )
    })
  }

  async leave(): Promise<void> {
    this.ssh.end()
    await this.closed
  }
}

class RunningCommand {
  readonly channel: Channel
  readonly printed: Promise<Printed>
  out = ''
  err = ''

  constructor(channel: Channel & { readonly stderr: NodeJS.ReadableStream }) {
    this.channel = channel
    let status: number | undefined
    channel.on('exit', (code: number) => {
      status = code
    })
    channel.on('data', (chunk: Buffer) => {
      this.out += chunk.toString()
    })
    channel.stderr.on('data', (chunk: Buffer) => {
      this.err += chunk.toString()
    })
    this.printed = new Promise((resolve) => {
      channel.on('close', () => resolve({ out: this.out, err: this.err, status }))
    })
  }
}

/** Fails the test unless something was refused with this number. */
export function assertPrinted({ err, out, status }: Printed, ngrok: number): void {
  assert.match(`${err}${out}`, new RegExp(`ERR_NGROK_${ngrok}\\)`))
  assert.equal(status, 1)
}

/** A client with one forward and a running command. */
export async function serving(
  gateway: TestGateway,
  { address = 'app.example.test', port = 443, command = 'http' } = {},
): Promise<{ client: TestClient; port: number; run: RunningCommand }> {
  const client = await gateway.client().login()
  const [forwarded, run] = await Promise.all([client.forward(address, port), client.exec(command)])
  return { client, port: forwarded, run }
}

/** The one session that is online. */
export function theSession(gateway: TestGateway): LiveSession {
  const [session, ...more] = gateway.online.registry.liveSessions()
  assert.ok(session && more.length === 0, 'one session is online')
  return session
}

/** A visitor of the first tunnel that is online. */
export async function dial(gateway: TestGateway): Promise<ByteStream> {
  const [tunnel] = theSession(gateway).tunnels.values()
  const stream = await gateway.online.registry.dial({
    tunnelId: tunnel?.id ?? '',
    ip: '192.0.2.1',
    port: 4711,
    proto: 'https',
    edge: 'none',
    passthroughTls: false,
  })
  if (stream instanceof DialFault) throw stream
  return stream
}
