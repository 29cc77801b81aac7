/** Memory for bodies that modules read, over real sockets: a flood of forged webhooks is limited, others are served. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { after, before, describe, test } from 'node:test'
import { until } from '../support/until.ts'
import { httpUpstream, type Upstream } from '../support/upstream.ts'
import { dialled, http2Over } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

const MIB = 1024 * 1024
const BUDGET = 16 * MIB
const SECRET = 'a secret of the test'
/** A forged signature of the right form. */
const MADE_UP = `sha256=${'0'.repeat(64)}`

let world: World
let service: Upstream
let edge: HttpsEdge
let other: HttpsEdge

before(async () => {
  world = await World.start({ flags: { 'body-memory': '16MiB' } })
  service = await httpUpstream(world)
  const webhook_verification = { provider: 'github', secret: SECRET }
  edge = await world.httpsTo(service, { webhook_verification })
  other = await world.httpsTo(service, { webhook_verification })
})
after(() => world.stop())

async function metric(name: string): Promise<number> {
  const text = await (await fetch(world.platform.metricsUrl)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

const held = (): Promise<number> => metric('postern_body_memory_bytes')
const refusals = (): Promise<number> => metric('postern_body_memory_refusals_total')

const signed = (body: Buffer | string): Record<string, string> => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
})

async function openHttp2(name: string, from: string): Promise<ClientHttp2Session> {
  const { httpsPort: port, ca } = world.platform
  return http2Over(await dialled({ name, port, ca }, { version: '2', from }), { name })
}

/** Sends this many bytes of a webhook whose body never ends. */
function beginWebhook(session: ClientHttp2Session, bytes: number): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': '/', 'x-hub-signature-256': MADE_UP })
  stream.on('error', () => {})
  // Writing everything at once on many streams would keep this client from reading the answers.
  const piece = Buffer.alloc(32 * 1024)
  const write = (left: number): void => {
    if (left > 0 && !stream.destroyed) stream.write(piece, () => write(left - piece.length))
  }
  write(bytes)
  return stream
}

describe('webhooks with forged signatures', () => {
  test('on 60 streams use no more than their share of memory, and others are served meanwhile', async () => {
    const session = await openHttp2(edge.name, '127.0.0.1')
    const before = await refusals()
    const answers: { status: number; retryAfter: unknown }[] = []
    for (let i = 0; i < 60; i++) {
      beginWebhook(session, 2 * MIB).on('response', ({ ':status': status = 0, 'retry-after': retryAfter }) =>
        answers.push({ status, retryAfter }),
      )
    }
    // A quarter of 16 MiB is not room for two of these.
    await until('all that got no memory are refused', () => answers.length >= 59)
    const most = await held()
    assert.ok(most <= BUDGET / 4, `${most} bytes are in use`)
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [503])
    assert.ok(answers.every(({ retryAfter }) => retryAfter === '5'))
    assert.ok((await refusals()) >= before + 59)

    // Another visitor of the same edge, and a visitor of another edge, get through.
    const body = Buffer.alloc(MIB, 'x')
    for (const name of [edge.name, other.name]) {
      const { status, code } = await world.ask(name, { method: 'POST', body, headers: signed(body), from: '127.0.0.2' })
      assert.equal(status, 200, code)
    }
    session.destroy()
    await until('the memory is free again', async () => (await held()) === 0)
  })

  test('are refused with an error code of their own when there is no memory', async () => {
    const body = Buffer.alloc(9 * MIB)
    const answer = await world.ask(edge.name, { method: 'POST', body, headers: { 'x-hub-signature-256': MADE_UP } })
    assert.equal(answer.status, 503)
    assert.equal(answer.code, 'ERR_BODY_MEMORY_FULL')
    assert.equal(answer.headers['retry-after'], '5')
  })

  for (const version of ['1.1', '2'] as const) {
    test(`free their memory when they are refused, and when the visitor leaves: HTTP/${version}`, async () => {
      const headers = { 'x-hub-signature-256': MADE_UP }
      const { status } = await world.ask(edge.name, { version, method: 'POST', body: Buffer.alloc(MIB), headers })
      assert.equal(status, 403)
      await until('a refused one uses no memory', async () => (await held()) === 0)

      const { httpsPort: port, ca } = world.platform
      for (const leave of ['end', 'reset'] as const) {
        const socket = await dialled({ name: edge.name, port, ca }, { version })
        if (version === '2') {
          const stream = beginWebhook(http2Over(socket, { name: edge.name }), MIB)
          await until('its bytes are in memory', async () => (await held()) >= MIB)
          if (leave === 'reset') stream.close(8)
          else socket.destroy()
        } else {
          const head = [
            `POST / HTTP/1.1\r\nHost: ${edge.name}\r\nContent-Length: ${2 * MIB}`,
            `X-Hub-Signature-256: ${MADE_UP}\r\n\r\n`,
          ]
          socket.write(head.join('\r\n'))
          socket.write(Buffer.alloc(MIB))
          await until('its bytes are in memory', async () => (await held()) >= MIB)
          if (leave === 'end') socket.end()
          else socket.destroy()
        }
        await until('one whose visitor left uses no memory', async () => (await held()) === 0)
        socket.destroy()
      }
    })

    test(`a correctly signed one frees its memory once it is answered: HTTP/${version}`, async () => {
      const body = Buffer.alloc(MIB, 'y')
      const answer = await world.ask(edge.name, { version, method: 'POST', body, headers: signed(body) })
      assert.equal(answer.status, 200)
      assert.equal(JSON.parse(answer.text).body.length, MIB)
      await until('it holds nothing', async () => (await held()) === 0)
    })
  }

  test('with a malformed body leave no memory in use', async () => {
    const { httpsPort: port, ca } = world.platform
    const socket = await dialled({ name: edge.name, port, ca }, { version: '1.1' })
    const head = `POST / HTTP/1.1\r\nHost: ${edge.name}\r\nTransfer-Encoding: chunked\r\nX-Hub-Signature-256: ${MADE_UP}`
    socket.write(`${head}\r\n\r\nno chunk\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(String(answer), /^HTTP\/1\.1 400 /)
    socket.destroy()
    await until('it holds nothing', async () => (await held()) === 0)
  })
})
