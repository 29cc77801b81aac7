/** For tests: the TLS front on a free port, with edges that greet admitted visitors, and visitors for it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { createLog } from '../../../lib/log/create-log.ts'
import { Authority, createAuthority } from '../../../lib/x509/certificate-authority.ts'
import type { TlsDemands } from '../../../modules/phases.ts'
import { ListenFault } from '../open-listener.ts'
import { PublicListener, type PublicListenerOptions } from '../public-listener.ts'
import { Certificates } from '../served-certificates.ts'
import { type HandshakeFault, type Secured, type TlsEdge, TlsServers, type TlsServersOptions } from '../tls-servers.ts'

type Outcome = Secured | HandshakeFault

export interface FrontOptions {
  readonly edges?: Readonly<Record<string, TlsEdge>>
  readonly listener?: Partial<PublicListenerOptions>
  readonly servers?: Partial<TlsServersOptions>
  readonly onSecured?: (secured: Secured) => void
}

export class Front {
  readonly made = createAuthority()
  readonly authority = new Authority(this.made.certPem, this.made.keyPem)
  readonly certificates: Certificates
  readonly servers: TlsServers
  readonly listener: PublicListener
  /** By server name; may be changed. */
  readonly edges: Map<string, TlsEdge>
  readonly outcomes: Outcome[] = []
  /** Lines of the log. */
  readonly logged: string[] = []
  port = 0
  #wake: (() => void) | undefined

  constructor({ edges = {}, listener = {}, servers = {}, onSecured = greet }: FrontOptions = {}) {
    const log = createLog({ format: 'json', destination: { write: (line) => this.logged.push(line) } })
    this.edges = new Map(Object.entries(edges))
    this.certificates = new Certificates({ authority: this.authority })
    this.servers = new TlsServers({ certificates: this.certificates, log, ...servers })
    this.listener = new PublicListener({
      log,
      onConnection: (greeted) => {
        const edge = this.edges.get(greeted.hello.serverName)
        assert.ok(edge, `no edge for ${greeted.hello.serverName}`)
        this.servers.handshake(edge, greeted, (outcome) => {
          this.outcomes.push(outcome)
          this.#wake?.()
          if ('socket' in outcome) onSecured(outcome)
        })
      },
      ...listener,
    })
  }

  async start(): Promise<this> {
    const address = await this.listener.listen({ host: '127.0.0.1', port: 0 })
    if (address instanceof ListenFault) throw address
    this.port = address.port
    return this
  }

  async stop(): Promise<void> {
    await this.listener.close()
    for (const outcome of this.outcomes) if ('socket' in outcome) outcome.socket.destroy()
  }

  /** The outcome of the handshake that is under way, or of the first since the last call. */
  async outcome(): Promise<Outcome> {
    while (this.outcomes.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const [outcome] = this.outcomes.splice(0, 1)
    assert.ok(outcome)
    return outcome
  }

  async secured(): Promise<Secured> {
    const outcome = await this.outcome()
    assert.ok('socket' in outcome, `no handshake: ${JSON.stringify(outcome)}`)
    return outcome
  }

  async fault(): Promise<HandshakeFault> {
    const outcome = await this.outcome()
    assert.ok('fault' in outcome, 'the handshake succeeded')
    return outcome
  }

  /** Starts to connect; the name `x.test` is that of the edge `x.test`. */
  visit(servername: string, options: ConnectionOptions = {}): TLSSocket {
    const to = { host: '127.0.0.1', port: this.port, servername, ca: this.made.certPem }
    // Tests await errors where they matter; those of a visitor that is no longer used must not end the test.
    return connect({ ...to, ...options }).on('error', () => {})
  }

  /** Connects and reads the greeting: only then does a visitor over TLS 1.3 know that it was admitted. */
  async enter(servername: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = this.visit(servername, options)
    const [greeting] = (await once(socket, 'data')) as [Buffer]
    assert.equal(greeting.toString(), 'hello')
    return socket
  }

  /** The message with which a visitor is refused. */
  async refusal(servername: string, options: ConnectionOptions = {}): Promise<string> {
    const socket = this.visit(servername, options)
    const refused = new Promise<string>((resolve) => {
      socket.on('data', (bytes: Buffer) => resolve(`got ${bytes.toString()}`))
      socket.on('error', (error) => resolve(error.message))
      socket.on('end', () => resolve('end'))
    })
    const words = await refused
    socket.destroy()
    return words
  }
}

function greet({ socket }: Secured): void {
  socket.write('hello')
}

export function tlsEdge(id: string, tls: TlsDemands = {}, kind: TlsEdge['kind'] = 'https'): TlsEdge {
  return { id, kind, tls, tlsKey: JSON.stringify(tls) }
}

/** A session that can be resumed. */
export async function sessionFrom(front: Front, name: string, options: ConnectionOptions = {}): Promise<Buffer> {
  const visitor = front.visit(name, options)
  // Over TLS 1.3 it comes after the handshake.
  const [session] = (await once(visitor, 'session')) as [Buffer]
  visitor.destroy()
  await front.secured()
  return session
}

export async function isResumed(
  front: Front,
  name: string,
  { session, ...options }: ConnectionOptions,
): Promise<boolean> {
  const visitor: TLSSocket = await front.enter(name, { ...options, ...bareSession(session) })
  const { facts } = await front.secured()
  assert.equal(facts.isResumed, visitor.isSessionReused())
  visitor.destroy()
  return facts.isResumed
}

/** Node's client offers a session only to the name it is from, unless it does not know that name. */
export function bareSession(session: Buffer | undefined): ConnectionOptions {
  assert.ok(session)
  const mark = '\0nodejs:tls:session:1\0'
  if (session.toString('latin1', 0, mark.length) !== mark) return { session, rejectUnauthorized: false }
  const nameBytes = session.readUInt16BE(mark.length)
  return { session: session.subarray(mark.length + 2 + nameBytes), rejectUnauthorized: false }
}

/** The hello that `dial` sends to a port that does not answer. */
export async function heardHello(dial: (port: number) => { destroy(): unknown }): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address && typeof address === 'object')
  const visitor = dial(address.port)
  const [socket] = (await once(server, 'connection')) as [Socket]
  let bytes: Buffer = Buffer.alloc(0)
  while (bytes.length < 5 || bytes.length < 5 + bytes.readUInt16BE(3)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    bytes = Buffer.concat([bytes, chunk])
  }
  socket.destroy()
  visitor.destroy()
  server.close()
  return bytes
}

/** A plain connection whose errors do not fail the test. */
export async function dialled(port: number): Promise<Socket> {
  const socket = connectTcp({ port, host: '127.0.0.1', noDelay: true }).on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Resolves when both directions are over, with or without errors. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve()
    else socket.once('close', () => resolve())
  })
}
