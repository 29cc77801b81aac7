/** Hostile neighbours, each in a process of its own: a member with an API key, an agent with a credential, and a stranger. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request as requestPlain } from 'node:http'
import { connect as connectTcp, type Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { connect as connectAgent } from '../../src/agent/library.ts'
import { ApiClient } from '../support/api-client.ts'
import type { Owner } from '../support/upstream.ts'
import { pinned } from './pinned.ts'

export interface NeighbourOptions {
  readonly role: Role
  readonly api: { readonly url: string; readonly key: string }
  /** PEM. */
  readonly ca: string
  /** `host:port` of the listener for agents, and the credential of the hostile agent. */
  readonly agents: string
  readonly authtoken: string
  readonly httpsPort: number
  readonly httpPort: number
  readonly sshPort: number
  /** The edge of the hostile member, and those of others that strangers may visit. */
  readonly own: { readonly id: string; readonly name: string; readonly routeId: string }
  readonly loginName: string
  readonly samlUrl: string
}

export type Role = 'member' | 'agent' | 'stranger'

export interface Neighbour {
  readonly pid: number
  /** Ends it; returns how often it did each thing, by how that ended. */
  stop(): Promise<Readonly<Record<string, number>>>
}

/** They run on what the machine leaves: real ones have machines of their own. */
export async function startNeighbour(
  owner: Owner,
  options: NeighbourOptions,
  cpus: string | undefined,
): Promise<Neighbour> {
  const child = fork(fileURLToPath(import.meta.url), { serialization: 'advanced' })
  owner.after(() => child.kill('SIGKILL'))
  const pid = child.pid ?? 0
  // It has loaded its code.
  await once(child, 'message')
  setPriority(pid, constants.priority.PRIORITY_LOW)
  if (cpus !== undefined) pinned(pid, cpus)
  child.send(options)
  return {
    pid,
    stop() {
      const { promise, resolve } = Promise.withResolvers<Readonly<Record<string, number>>>()
      child.once('message', (counts) => {
        child.kill('SIGKILL')
        resolve(counts as Readonly<Record<string, number>>) // sent below
      })
      child.send('stop')
      return promise
    },
  }
}

/** One thing that it does again and again: how many at once, and how many in a second in all. */
interface Deed {
  readonly atOnce: number
  readonly perSecond: number
  /** Resolves with how it ended, such as a status. */
  readonly run: (number: number) => Promise<number | string>
}

/** Where the stranger connects from: another source than that of the bystanders. */
const STRANGER = '127.0.0.66'

const LIMIT_MS = 30_000

const costly = {
  inbound: [
    {
      expressions: ["lists.range(3000).all(i, i >= 0) && req.url.matches('(a|b|ab)*c') || true"],
      actions: [
        { type: 'rate-limit', config: { name: 'a', capacity: 1_000_000, rate: '60s', bucket_key: ['req.url'] } },
        { type: 'url-rewrite', config: { from: '/', to: `/${'a'.repeat(200)}` } },
        { type: 'custom-response', config: { status_code: 200, body: '${req.url}' } },
      ],
    },
  ],
}

const random = (): string => Math.random().toString(36).slice(2)

async function memberDeeds({ api, own, httpsPort }: NeighbourOptions): Promise<Record<string, Deed>> {
  const client = new ApiClient(api.url, api.key)
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await client.send(method, path, body === undefined ? {} : { body })
    return { ...answer, code: answer.status >= 400 ? String(answer.body?.error_code ?? answer.status) : answer.status }
  }
  // Another attack may have left some.
  const { body: kept } = await send('GET', '/backends/http_response?limit=1')
  const isFirst = kept.backends?.length === 0
  for (let i = 0; isFirst && i < 60; i++) await send('POST', '/backends/http_response', { body: 'x'.repeat(250_000) })
  await send('PUT', `/edges/https/${own.id}/routes/${own.routeId}/policy`, costly)
  return {
    lists: { atOnce: 4, perSecond: 4, run: async () => (await send('GET', '/backends/http_response?limit=100')).code },
    captures: {
      ...{ atOnce: 2, perSecond: 5 },
      run: async () => (await send('POST', '/captures', { edge_id: own.id, duration: 60 })).code,
    },
    edges: {
      ...{ atOnce: 2, perSecond: 5 },
      async run(number) {
        const hostports = Array.from({ length: 20 }, (_, i) => `h${number}-${i}-${random()}.hostile.test:${httpsPort}`)
        const { code, body } = await send('POST', '/edges/https', { hostports })
        if (typeof code === 'string') return code
        const at = `/edges/https/${body.id}`
        const route = await send('POST', `${at}/routes`, { match_type: 'path_prefix', match: '/' })
        if (typeof route.code !== 'string') await send('PUT', `${at}/routes/${route.body.id}/policy`, costly)
        return (await send('DELETE', at)).code
      },
    },
    explains: {
      ...{ atOnce: 4, perSecond: 10 },
      run: async () => (await send('POST', '/policy/explain', { edge_id: own.id, request: { url: '/aaaa' } })).code,
    },
    streams: { atOnce: 1, perSecond: 5, run: () => openStream(api) },
    writes: {
      ...{ atOnce: 4, perSecond: 20 },
      run: async () => {
        const { code, body } = await send('POST', '/ip_policies', { description: 'hostile' })
        return typeof code === 'string' ? code : (await send('DELETE', `/ip_policies/${body.id}`)).code
      },
    },
  }
}

/** Opens a stream of exchanges that is never read. */
function openStream({ url, key }: NeighbourOptions['api']): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, 'service-version': '2' }
    requestPlain(`${url}/exchanges/stream`, { headers, agent: false })
      .on('response', (response) => resolve(response.pause().statusCode ?? 0))
      .on('error', (error: Error & { code?: string }) => resolve(error.code ?? 'error'))
      .end()
  })
}

async function agentDeeds({ agents, ca, authtoken }: NeighbourOptions): Promise<Record<string, Deed>> {
  const connect = () => connectAgent({ server: agents, ca, authtoken })
  const sessions = await Promise.all(Array.from({ length: 4 }, connect))
  const policy = JSON.stringify({
    on_http_request: Array.from({ length: 20 }, () => ({
      expressions: ["req.url.matches('(a|b|ab)*c') || true"],
      actions: [{ type: 'add-headers', config: { headers: { a: 'b'.repeat(2000) } } }],
    })),
  })
  return {
    binds: {
      ...{ atOnce: 40, perSecond: 200 },
      async run(number) {
        const agent = sessions[number % sessions.length]
        const bound = await agent?.forward({ addr: 9, domain: `hostile-${number}.chaos.test` })
        await bound?.close()
        return 'bound'
      },
    },
    policies: {
      ...{ atOnce: 4, perSecond: 20 },
      async run(number) {
        const agent = sessions[number % sessions.length]
        const bound = await agent?.forward({ addr: 9, domain: `rules-${number}.chaos.test`, traffic_policy: policy })
        await bound?.close()
        return 'bound'
      },
    },
    sessions: {
      ...{ atOnce: 5, perSecond: 20 },
      async run() {
        const agent = await connect()
        await agent.close()
        return 'came'
      },
    },
  }
}

async function strangerDeeds(options: NeighbourOptions): Promise<Record<string, Deed>> {
  const { httpsPort, httpPort, sshPort, own, loginName, samlUrl, agents } = options
  const plain = (port: number): Promise<Socket> =>
    opened(connectTcp({ port, host: '127.0.0.1', localAddress: STRANGER }), 'connect')
  const secure = (servername: string): Promise<Socket> => {
    const to = { port: httpsPort, host: '127.0.0.1', servername, rejectUnauthorized: false, localAddress: STRANGER }
    return opened(connectTls(to), 'secureConnect')
  }
  const kept = (socket: Socket): string => {
    socket.resume()
    return 'open'
  }
  const ask = async (socket: Socket, text: string): Promise<string> => {
    const answer = firstLine(socket)
    socket.write(text)
    return answer.finally(() => socket.destroy())
  }
  const saml = new URL(samlUrl)
  const document = Buffer.from(`<a>${'<b c="d">e</b>'.repeat(1500)}</a>`).toString('base64url')
  return {
    'made-up names': {
      ...{ atOnce: 10, perSecond: 100 },
      run: async () => ask(await plain(httpPort), `GET / HTTP/1.1\r\nHost: ${random()}.made-up.test\r\n\r\n`),
    },
    'idle connections': { atOnce: 2, perSecond: 5, run: async () => kept(await secure(own.name)) },
    'silent agents': { atOnce: 2, perSecond: 5, run: async () => kept(await plain(Number(agents.split(':').at(-1)))) },
    'silent SSH': { atOnce: 2, perSecond: 5, run: async () => kept(await plain(sshPort)) },
    'slow heads': {
      ...{ atOnce: 2, perSecond: 10 },
      async run() {
        const socket = await plain(httpPort)
        socket.write(`GET / HTTP/1.1\r\nHost: ${own.name}\r\nX-A: `)
        return kept(socket)
      },
    },
    pipelined: {
      ...{ atOnce: 2, perSecond: 2 },
      run: async () => ask(await plain(httpPort), 'GET / HTTP/1.1\r\nHost: nobody.made-up.test\r\n\r\n'.repeat(2000)),
    },
    'costly rules': {
      ...{ atOnce: 4, perSecond: 40 },
      run: async () =>
        ask(await secure(own.name), `GET /${random()}?${'/'.repeat(2000)} HTTP/1.1\r\nHost: ${own.name}\r\n\r\n`),
    },
    'made-up cookies': {
      ...{ atOnce: 10, perSecond: 100 },
      async run() {
        const secret = Array.from({ length: 5 }, random).join('').padEnd(43, 'a').slice(0, 43)
        const cookie = `__Host-postern.session=${secret}`
        return ask(await secure(loginName), `GET /app HTTP/1.1\r\nHost: ${loginName}\r\nCookie: ${cookie}\r\n\r\n`)
      },
    },
    'SAML documents': {
      ...{ atOnce: 10, perSecond: 20 },
      async run() {
        const body = `SAMLRequest=${document}`
        const head = `POST ${saml.pathname} HTTP/1.1\r\nHost: ${saml.hostname}\r\nContent-Type: application/x-www-form-urlencoded`
        return ask(await secure(saml.hostname), `${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      },
    },
    handshakes: {
      ...{ atOnce: 4, perSecond: 30 },
      run: async () => {
        ;(await secure(own.name)).destroy()
        return 'done'
      },
    },
  }
}

function opened(socket: Socket, event: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve(socket))
    socket.on('error', reject).on('close', () => reject(new Error('closed')))
  })
}

/** The status of the first answer. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString('latin1').split(' ', 2)[1] ?? ''))
    socket.on('close', () => resolve('closed'))
  })
}

const roles: Readonly<Record<Role, (options: NeighbourOptions) => Promise<Record<string, Deed>>>> = {
  member: memberDeeds,
  agent: agentDeeds,
  stranger: strangerDeeds,
}

/** Does everything at an even pace; it does not catch up on what is late. */
async function run(options: NeighbourOptions, counts: Map<string, number>): Promise<void> {
  const deeds = Object.entries(await roles[options.role](options))
  for (const [name, { atOnce, perSecond, run }] of deeds) {
    let number = 0
    const lane = async (): Promise<never> => {
      for (;;) {
        const next = pause((1000 * atOnce) / perSecond)
        const late = pause(LIMIT_MS, 'late', { ref: false })
        const outcome = await Promise.race([run(number++), late]).catch((error: Error & { code?: string }) => {
          return String(error.code ?? error.message).slice(0, 60)
        })
        const key = `${name}: ${outcome}`
        counts.set(key, (counts.get(key) ?? 0) + 1)
        await next
      }
    }
    for (let i = 0; i < atOnce; i++) void lane()
  }
}

if (import.meta.main) {
  const counts = new Map<string, number>()
  process.on('disconnect', () => process.exit())
  process.send?.('ready')
  // It goes on whatever breaks.
  process.on('uncaughtException', () => {})
  process.on('message', (received) => {
    if (received === 'stop') process.send?.(Object.fromEntries(counts))
    else void run(received as NeighbourOptions, counts) // sent above
  })
}
