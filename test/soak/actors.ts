/** The actors that make traffic in the soak, in rounds: what people and attackers do with a server all day. */
import { createHmac, randomBytes } from 'node:crypto'
import { connect as connectTcp } from 'node:net'
import { TLSSocket } from 'node:tls'
import { connect } from '../../src/agent/library.ts'
import {
  type Answered,
  askHttp2,
  beginVisit,
  dialTcp,
  dialTls,
  exchange,
  openHttp2,
  visit,
} from '../support/visitor.ts'
import { WebSocketVisitor } from '../support/websocket.ts'
import { onceOrClosed, pause, type Stage, WEBHOOK_SECRET } from './stage.ts'

/** Random numbers that repeat with the seed. */
export type Dice = (sides: number) => number

export interface Scene {
  readonly stage: Stage
  readonly dice: Dice
  readonly signal: AbortSignal
}

/** Plays one round; a throw counts as a fault of the round, and the next one begins. */
type Actor = (scene: Scene) => Promise<void>

/** How long a visitor stalls, in milliseconds. */
const STALL_MS = 1500

const pick = <T>(dice: Dice, all: readonly T[]): T => all[dice(all.length)] as T

function isOk({ status, headers }: Pick<Answered, 'status' | 'headers'>): void {
  if (status !== 200) throw new Error(`answered with ${status} ${String(headers['postern-error-code'])}`)
}

export const actors: Readonly<Record<string, Actor>> = {
  async 'HTTP/1.1'({ stage, dice }) {
    const url = pick(dice, stage.https)
    const body = dice(2) === 0 ? undefined : Buffer.alloc(dice(200_000))
    const answer = await visit(url, stage, { method: body ? 'POST' : 'GET', ...(body && { body }) })
    isOk(answer)
  },

  async 'HTTP/2'({ stage, dice }) {
    const url = pick(dice, stage.https)
    const session = openHttp2(url, stage)
    try {
      const asks = Array.from({ length: 1 + dice(12) }, () =>
        askHttp2(session, url, dice(2) === 0 ? {} : { method: 'POST', body: Buffer.alloc(dice(100_000)) }),
      )
      for (const answer of await Promise.all(asks)) isOk(answer)
    } finally {
      if (dice(2) === 0) session.close()
      else session.destroy()
    }
  },

  async 'streams that are reset'({ stage, dice }) {
    const url = pick(dice, stage.https)
    const session = openHttp2(url, stage)
    const streams = Array.from({ length: 8 }, () => {
      const stream = session.request({ ':method': 'POST', ':path': pick(dice, ['/', '/large']) })
      stream.on('error', () => {})
      stream.write(Buffer.alloc(dice(60_000)))
      return stream
    })
    await pause(dice(40))
    for (const stream of streams) stream.close(8)
    session.destroy()
    await onceOrClosed(session, 'close')
  },

  async 'visitors that leave at every stage'({ stage, dice }) {
    const { port, ca } = stage
    const { hostname } = new URL(pick(dice, stage.https))
    const steps = dice(7)
    if (steps < 2) {
      const socket = connectTcp({ port, host: '127.0.0.1' })
      socket.on('error', () => {})
      await onceOrClosed(socket, 'connect')
      // A ClientHello that is cut short.
      if (steps === 1) socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]))
      await pause(dice(20))
      if (dice(2) === 0) socket.resetAndDestroy()
      else socket.destroy()
      return
    }
    const socket = await dialTls(`https://${hostname}:${port}`, { ca })
    const head = `POST ${dice(2) === 0 ? '/' : '/large'} HTTP/1.1\r\nHost: ${hostname}\r\n`
    if (steps === 3) socket.write(head)
    if (steps >= 4) socket.write(`${head}Content-Length: 100000\r\n\r\n`)
    if (steps === 4) socket.write(Buffer.alloc(50_000))
    if (steps >= 5) socket.write(Buffer.alloc(100_000))
    if (steps === 6) await onceOrClosed(socket, 'data')
    await pause(dice(20))
    if (dice(2) === 0) socket.end()
    else socket.destroy()
    await pause(10)
    socket.destroy()
  },

  async WebSockets({ stage, dice }) {
    const visitor = await WebSocketVisitor.open(pick(dice, stage.https.slice(0, 2)), stage)
    for (let i = dice(20); i > 0; i--) {
      const message = randomBytes(1 + dice(120))
      visitor.send(message)
      if (!(await visitor.receive()).equals(message)) throw new Error('another message came back')
    }
    visitor.close()
  },

  async 'stalled uploads'({ stage, dice, signal }) {
    const { hostname } = new URL(stage.stalled)
    if (dice(2) === 0) {
      const session = openHttp2(stage.stalled, stage)
      const stream = session.request({ ':method': 'POST', ':path': '/' })
      stream.on('error', () => {})
      stream.write(Buffer.alloc(1_000_000))
      await pause(STALL_MS, signal)
      session.destroy()
      return
    }
    const below = connectTcp({ port: stage.port, host: '127.0.0.1' })
    below.on('error', () => {})
    await onceOrClosed(below, 'connect')
    const socket = await dialTls(stage.stalled, { ca: stage.ca, socket: below })
    socket.write(`POST / HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 100000000\r\n\r\n`)
    socket.write(Buffer.alloc(1_000_000))
    await pause(STALL_MS, signal)
    // A normal close would wait behind bytes that our system cannot send, and go unnoticed for five minutes.
    below.resetAndDestroy()
  },

  async 'stalled downloads'({ stage, dice, signal }) {
    const url = pick(dice, stage.https.slice(0, 2))
    if (dice(2) === 0) {
      const session = openHttp2(url, stage)
      const stream = session.request({ ':path': '/large' })
      stream.on('error', () => {})
      await onceOrClosed(stream, 'response')
      await pause(STALL_MS, signal)
      session.destroy()
      return
    }
    const request = beginVisit(url, stage, { path: '/large' })
    request.on('error', () => {})
    await onceOrClosed(request, 'response')
    await pause(STALL_MS, signal)
    request.destroy()
  },

  async 'TCP and TLS edges'({ stage, dice }) {
    const open = async () => (dice(2) === 0 ? await dialTcp(stage.tcp) : await dialTls(stage.tls, { ca: stage.ca }))
    const socket = await open()
    const text = 'x'.repeat(1 + dice(100_000))
    if ((await exchange(socket, text)) !== text) throw new Error('other bytes came back')
    const left = await open()
    left.write(Buffer.alloc(dice(500_000)))
    await pause(dice(20))
    // A TLS socket cannot reset.
    if (dice(2) === 0 && !(left instanceof TLSSocket)) left.resetAndDestroy()
    else left.destroy()
  },

  async webhooks({ stage, dice }) {
    const body = Buffer.alloc(1 + dice(400_000), 'w')
    const isSigned = dice(2) === 0
    const mac = createHmac('sha256', isSigned ? WEBHOOK_SECRET : 'another')
      .update(body)
      .digest('hex')
    const headers = { 'x-hub-signature-256': `sha256=${mac}` }
    const version = pick(dice, ['1.1', '2'] as const)
    const { status } = await visit(stage.webhooks, stage, { version, method: 'POST', body, headers })
    if (status !== (isSigned ? 200 : 403)) throw new Error(`a webhook was answered with ${status}`)
  },

  async 'agents that come and go'({ stage, dice }) {
    const { server, authtoken } = stage.watched
    const agent = await connect({ server: server.agents, authtoken, ca: stage.ca })
    try {
      const { url } = await agent.forward({ addr: stage.service })
      isOk(await visit(`${url}${new URL(url).port === '' ? `:${stage.port}` : ''}`, stage))
      await pause(dice(50))
    } finally {
      await agent.close()
    }
  },

  async 'edges that come and go'({ stage, dice }) {
    const { api } = stage.watched
    const name = `e${dice(1_000_000_000)}.soak.test`
    const backend = await api.create('/backends/static', { address: stage.service, tls: { enabled: false } })
    const edge = await api.create('/edges/https', { hostports: [`${name}:443`] })
    const path = `/edges/https/${edge.id}`
    try {
      const route = await api.create(`${path}/routes`, {
        match_type: 'path_prefix',
        match: '/',
        backend: { backend_id: backend.id },
        compression: {},
        circuit_breaker: { error_threshold_percentage: 0.5 },
      })
      const url = `https://${name}:${stage.port}`
      await visit(url, stage)
      await api.put(`${path}/routes/${route.id}/request_headers`, { add: { 'x-soak': String(dice(100)) } })
      await api.put(`${path}/routes/${route.id}/user_agent_filter`, { deny: ['(?i)bot'] })
      await visit(url, stage, { version: '2' })
      await api.delete(`${path}/routes/${route.id}/user_agent_filter`)
      await api.update(path, { description: String(dice(100)) })
      await visit(url, stage)
      await api.delete(`${path}/routes/${route.id}`)
    } finally {
      await api.delete(path)
      await api.delete(`/backends/static/${backend.id}`)
    }
  },
}
