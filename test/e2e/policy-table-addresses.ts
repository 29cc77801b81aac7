/** One address of every kind that can have a policy; each row of the table replaces its policy. */
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import ngrok from '@ngrok/ngrok'
import { tlsIdentity } from '../support/tls-identity.ts'
import { type Recorder, shouts } from './edges/upstreams.ts'
import { type Answer, type Ask, askHttp1, type HttpVersion } from './edges/visitor.ts'
import type { World } from './edges/world.ts'
import { listenOn } from './policy-table-services.ts'

export const protocols = ['tcp', 'tls passed through', 'tls ended', 'http', 'https'] as const
export type Protocol = (typeof protocols)[number]

/** How visitors reach an address with an accepted policy. */
export interface Visited {
  /** Without HTTP: whether the service is reached. */
  readonly isReached: (from: string) => Promise<boolean>
  /** With HTTP; rejects when the connection ends without an answer. */
  readonly ask: (about: Ask) => Promise<Answer>
  readonly versions: readonly HttpVersion[]
}

export interface Address {
  /** Sets the policy, or returns why it was refused. */
  readonly put: (policy: object) => Promise<Visited | { readonly refusal: string }>
}

/** Stored edges. For plain HTTP there are none: the plain listener redirects visitors of an HTTPS edge before any rule. */
export async function storedEdges(world: World, service: Recorder): Promise<Readonly<Record<Protocol, Address>>> {
  const plain = await world.toAddress(await shouts(world))
  const secure = await world.toAddress(await secureShouts(world))
  const tcp = await world.tcpEdge({ backend: plain })
  const passed = await world.tlsEdge({ backend: secure })
  const ended = await world.tlsEdge({ backend: plain, tls_termination: { terminate_at: 'edge' } })
  const https = await world.httpsTo(service)
  const [route] = https.routes
  const { httpPort, httpsPort } = world.platform
  const at = (path: string, visited: Partial<Visited>): Address => ({
    async put(policy) {
      const body = { value: JSON.stringify(policy) }
      const { status, body: answer } = await world.api.send('PUT', `${path}/traffic_policy`, { body })
      if (status === 400) return { refusal: String(answer.msg) }
      if (status !== 200) throw new Error(`the policy was answered with ${status}: ${answer.msg}`)
      await world.inForce()
      return visitedBy(visited)
    },
  })
  const path = route?.path ?? ''
  return {
    tcp: at(tcp.path, { isReached: (from) => isHeard(dialTcp(tcp.port, from)) }),
    'tls passed through': at(passed.path, { isReached: (from) => isHeard(dialTls(httpsPort, passed.name, from)) }),
    'tls ended': at(ended.path, { isReached: (from) => isHeard(dialTls(httpsPort, ended.name, from)) }),
    http: at(path, { ask: (about) => askPlain(httpPort, https.name, about) }),
    https: at(path, { ask: (about) => world.ask(https.name, about), versions: ['1.1', '2'] }),
  }
}

/** Endpoints of an agent; each is closed before the next one is opened. */
export async function agentEndpoints(world: World, service: Recorder): Promise<Readonly<Record<Protocol, Address>>> {
  const { agents, authtoken, ca, httpPort, httpsPort } = world.platform
  const builder = new ngrok.SessionBuilder().authtoken(authtoken).serverAddr(agents).caCert(Buffer.from(ca))
  const session = await builder.connect()
  world.after(() => session.close())
  const plain = `tcp://${(await shouts(world)).address}`
  const secure = `tcp://${(await secureShouts(world)).address}`
  const { cert, key } = await tlsIdentity()
  let before: { close(): Promise<unknown> } | undefined

  const at = (
    bind: (name: string, policy: string) => Promise<{ close(): Promise<unknown>; url(): string | null }>,
    visited: (url: URL) => Partial<Visited>,
  ): Address => ({
    async put(policy) {
      await before?.close()
      before = undefined
      try {
        const listener = await bind(world.name(), JSON.stringify(policy))
        before = listener
        return visitedBy(visited(new URL(listener.url() ?? '')))
      } catch (error) {
        return { refusal: error instanceof Error ? error.message : String(error) }
      }
    },
  })
  const tls = ({ hostname }: URL) => ({ isReached: (from: string) => isHeard(dialTls(httpsPort, hostname, from)) })
  return {
    tcp: at(
      (_, policy) => session.tcpEndpoint().trafficPolicy(policy).listenAndForward(plain),
      ({ port }) => ({ isReached: (from) => isHeard(dialTcp(Number(port), from)) }),
    ),
    'tls passed through': at(
      (name, policy) => session.tlsEndpoint().domain(name).trafficPolicy(policy).listenAndForward(secure),
      tls,
    ),
    'tls ended': at(
      (name, policy) =>
        session
          .tlsEndpoint()
          .domain(name)
          .termination(Buffer.from(cert), Buffer.from(key))
          .trafficPolicy(policy)
          .listenAndForward(plain),
      tls,
    ),
    http: at(
      (name, policy) =>
        session
          .httpEndpoint()
          .scheme('HTTP')
          .domain(name)
          .trafficPolicy(policy)
          .listenAndForward(`http://${service.address}`),
      ({ hostname }) => ({ ask: (about) => askPlain(httpPort, hostname, about) }),
    ),
    https: at(
      (name, policy) =>
        session.httpEndpoint().domain(name).trafficPolicy(policy).listenAndForward(`http://${service.address}`),
      ({ hostname }) => ({ ask: (about) => world.ask(hostname, about), versions: ['1.1', '2'] }),
    ),
  }
}

function visitedBy(visited: Partial<Visited>): Visited {
  const none = (): never => {
    throw new Error('this address cannot be visited like that')
  }
  return { isReached: none, ask: none, versions: ['1.1'], ...visited }
}

function dialTcp(port: number, from: string): Socket {
  return connectTcp({ port, host: '127.0.0.1', localAddress: from })
}

/** Accepts any certificate, since it does not matter here. */
function dialTls(port: number, name: string, from: string): Socket {
  const below = dialTcp(port, from).on('error', () => {})
  return connectTls({ socket: below, servername: name, rejectUnauthorized: false })
}

/** Whether the echo service is reached; otherwise the connection was closed. */
async function isHeard(socket: Socket): Promise<boolean> {
  socket.on('error', () => {})
  socket.write('a')
  const closed = new Promise<false>((resolve) => socket.once('close', () => resolve(false)))
  const heard = once(socket, 'data').then(([said]) => String(said) === 'A')
  try {
    return await Promise.race([heard, closed])
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function askPlain(port: number, name: string, about: Ask): Promise<Answer> {
  const socket = dialTcp(port, about.from ?? '127.0.0.1').on('error', () => {})
  try {
    return await askHttp1(socket, { name }, about)
  } finally {
    socket.destroy()
  }
}

async function secureShouts(world: World): Promise<{ readonly address: string }> {
  const { cert, key } = await tlsIdentity()
  const server = createTlsServer({ cert, key }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => socket.write(chunk.toString('latin1').toUpperCase()))
  })
  return { address: `127.0.0.1:${await listenOn(world, server)}` }
}
