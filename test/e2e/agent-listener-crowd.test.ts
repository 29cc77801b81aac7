/** Agents that share an address with an attacker, or are behind a load balancer: each is judged by its own token. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const HOP = '127.0.0.2'

/** More failed logins in a minute than one address may have. */
const WRONG_LOGINS = 70

/** More than the unauthenticated connections that one address may have. */
const SILENT = 300

let platform: Platform
before(async () => {
  // One plane: each counts strangers and their failed logins separately, and the counts here are exact.
  platform = await startPlatform({ flags: { 'trusted-proxies': `${HOP}/32`, 'log-level': 'debug' }, planeCount: 1 })
})
after(() => platform.stop())

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

function dial(t: TestContext, from: string): Socket {
  return kept(t, connectTcp({ port: portOf(platform.agents), host: '127.0.0.1', localAddress: from }))
}

function secured(t: TestContext, below: Socket): TLSSocket {
  return kept(t, connectTls({ socket: below, ca: platform.ca, host: '127.0.0.1' }))
}

function kept<S extends Socket>(t: TestContext, socket: S): S {
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  return socket
}

/** Logs in and returns the answer as text; empty when the connection was closed without one. */
async function login(socket: TLSSocket, authtoken: string): Promise<string> {
  const text = JSON.stringify({ Version: ['3'], ClientId: '', Extra: { Authtoken: authtoken } })
  const body = Buffer.concat([Buffer.alloc(4), Buffer.from(text)])
  const head = Buffer.alloc(8)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = 0x12 // data that opens a stream
  head.writeUInt32BE(3, 4)
  socket.write(Buffer.concat([head, body]))
  let answer = ''
  return new Promise((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      answer += bytes.toString('latin1')
      if (/"(SessionID|ClientId)"|ERR_NGROK/.test(answer)) resolve(answer)
    })
    socket.once('close', () => resolve(''))
  })
}

/** Not `once`, which rejects on an error before the close. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
  })
}

const wrong = (): string => randomBytes(16).toString('hex')

function header(ip: string): Buffer {
  return Buffer.from(`PROXY TCP4 ${ip} 127.0.0.1 4000 7443\r\n`)
}

/** Addresses of all sessions that are online. */
async function sessionAddresses(): Promise<string[]> {
  const { tunnel_sessions } = await platform.admin.get('/tunnel_sessions')
  return tunnel_sessions.map(({ ip }: { ip: string }) => ip)
}

test('failed logins from the same address do not lock an agent out', async (t) => {
  const from = '127.0.0.11'
  const attempts = Array.from({ length: WRONG_LOGINS }, async () => {
    const socket = secured(t, dial(t, from))
    const answer = await login(socket, wrong())
    socket.destroy()
    return answer
  })
  for (const answer of await Promise.all(attempts)) assert.match(answer, /ERR_NGROK_107/)
  const agent = secured(t, dial(t, from))
  assert.match(await login(agent, platform.authtoken), /"ClientId":"ts_/)
  // Further failures do not end the running session either.
  await login(secured(t, dial(t, from)), wrong())
  assert.ok((await sessionAddresses()).includes(from))
  assert.equal(agent.destroyed, false)
})

test('a flood of failed logins is logged in a few lines, not one each', async () => {
  const lines = platform.log.filter((line) => line.includes('"peer":"127.0.0.11"'))
  const each = lines.filter((line) => line.includes('"level":"info"') && line.includes('agent connection refused'))
  assert.equal(each.length, 60)
  assert.equal(lines.filter((line) => line.includes('agent logins keep failing')).length, 1)
  const metrics = await (await fetch(platform.metricsUrl)).text()
  assert.ok(Number(/^postern_agent_login_failures_total (\d+)$/m.exec(metrics)?.[1]) >= WRONG_LOGINS)
})

test('silent connections from the same address do not lock an agent out', async (t) => {
  const from = '127.0.0.12'
  const silent = Array.from({ length: SILENT }, () => dial(t, from).resume())
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  assert.match(await login(secured(t, dial(t, from)), platform.authtoken), /"ClientId":"ts_/)
  const metrics = await (await fetch(platform.metricsUrl)).text()
  assert.ok(Number(/^postern_agents_turned_away_total (\d+)$/m.exec(metrics)?.[1]) > 0)
})

test('behind a trusted proxy an agent has the address in the PROXY header', async (t) => {
  for (const [ip, pieces] of [
    ['198.51.100.7', 1],
    ['198.51.100.8', 5],
  ] as const) {
    const below = dial(t, HOP)
    const bytes = header(ip)
    const size = Math.ceil(bytes.length / pieces)
    for (let at = 0; at < bytes.length; at += size) {
      below.write(bytes.subarray(at, at + size))
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.match(await login(secured(t, below), platform.authtoken), /"ClientId":"ts_/)
    assert.ok((await sessionAddresses()).includes(ip))
  }
  assert.ok(!(await sessionAddresses()).includes(HOP))
})

test('failed logins behind a trusted proxy count against the address in the header', async (t) => {
  const below = dial(t, HOP)
  below.write(header('198.51.100.99'))
  await login(secured(t, below), wrong())
  await until('it is logged', () => platform.log.some((line) => line.includes('"peer":"198.51.100.99"')))
})

test('a trusted proxy that sends no PROXY header is not let in', async (t) => {
  const socket = secured(t, dial(t, HOP))
  await closed(socket)
  assert.equal(socket.authorized, false)
})

test('a PROXY header from anybody else is not accepted', async (t) => {
  const below = dial(t, '127.0.0.3')
  below.write(header('198.51.100.66'))
  await closed(secured(t, below))
  assert.ok(!(await sessionAddresses()).includes('198.51.100.66'))
})

test('a silent proxy is disconnected when the server stops', async (t) => {
  const other = await startPlatform({ flags: { 'trusted-proxies': `${HOP}/32`, 'drain-timeout': '1s' } })
  const socket = connectTcp({ port: portOf(other.agents), host: '127.0.0.1', localAddress: HOP })
  kept(t, socket).resume()
  await once(socket, 'connect')
  // Once this request is answered, the server has accepted the connection that came before it.
  await other.admin.get('/tunnel_sessions')
  const closed = once(socket, 'close')
  await other.stop()
  await closed
})
