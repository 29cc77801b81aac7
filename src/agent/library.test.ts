import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
// By its package name, as a user's program imports it.
import { type ConnectionEvent, type ConnectOptions, connect, forward, listen } from 'postern'
import { portToKeep } from '../../test/support/free-port.ts'
import { type TlsIdentity, tlsIdentity } from '../../test/support/tls-identity.ts'
import { TestServer } from './testing/test-server.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-library-'))
let identity: TlsIdentity
let testServer: TestServer
let here: ConnectOptions
before(async () => {
  identity = await tlsIdentity()
  testServer = await TestServer.start(identity)
  writeFileSync(join(root, 'ca.pem'), identity.ca)
  here = { server: `127.0.0.1:${testServer.port}`, authtoken: 'token', ca: identity.ca }
})
after(async () => {
  await testServer.close()
  rmSync(root, { recursive: true })
})

async function get(id: string): Promise<string> {
  const visitor = testServer.visit(id, { proto: 'https' })
  visitor.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  let answer = ''
  for await (const chunk of visitor) answer += chunk
  return answer
}

describe('forward', () => {
  test('gives a service a URL, and releases it when closed', async () => {
    const service = createServer((_, response) => response.end('from the service'))
    service.listen(0, '127.0.0.1')
    await once(service, 'listening')
    const { port } = service.address() as AddressInfo // it listens on a port
    const tunnel = await forward({
      ...here,
      addr: port,
      domain: 'app.example.com',
      metadata: 'mine',
      session_metadata: 's',
    })
    assert.equal(tunnel.url, 'https://app.example.com')
    const { auth, binds, unbound, closed } = testServer.latest
    assert.deepEqual([auth.clientType, auth.metadata, binds[0]?.metadata], ['postern-library', 's', 'mine'])
    assert.match(await get(tunnel.id), /200 OK[\s\S]*from the service$/)
    await tunnel.close()
    assert.deepEqual(unbound, [tunnel.id])
    assert.equal(await closed, undefined)
    service.close()
  })

  test('uses settings from the environment', async () => {
    const given = { POSTERN_SERVER: here.server, POSTERN_AUTHTOKEN: 'from_env', POSTERN_CA: join(root, 'ca.pem') }
    Object.assign(process.env, given)
    try {
      const tunnel = await forward({ addr: 3000, labels: { app: 'shop' } })
      assert.deepEqual([tunnel.url, tunnel.urls], ['', []])
      assert.equal(testServer.latest.auth.authtoken.reveal(), 'from_env')
      await tunnel.close()
    } finally {
      for (const name of Object.keys(given)) delete process.env[name]
    }
  })

  test('has as many connections as it is told to', async () => {
    let planes = 0
    const plane = () => ({ planeId: `w${planes++}`, planeCount: 3 })
    const wide = await TestServer.start({ ...identity, rules: { plane } })
    const connection = await connect({ ...here, server: `127.0.0.1:${wide.port}`, connections: 2 })
    await connection.forward({ addr: 3000 })
    const leg = await wide.session(2)
    assert.deepEqual([leg.auth.clientId, leg.auth.heldPlanes], ['ts_1', ['w0']])
    await connection.close()
    await wide.close()
  })

  const wrong: [name: string, given: object, says: RegExp][] = [
    [
      'an unknown option',
      { addr: 1, domian: 'x' },
      /^ConfigError: `domian` is not a known key; did you mean `domain`\?$/,
    ],
    ['no address', {}, /^ConfigError: `addr` is missing/],
    [
      'a pool beside labels',
      { addr: 1, pooling: true, labels: { a: 'b' } },
      /^ConfigError: `pooling` cannot be combined with `labels`/,
    ],
    [
      'a policy that is no JSON',
      { addr: 1, traffic_policy: { size: 1n } },
      /^ConfigError: `traffic_policy` cannot be written as JSON/,
    ],
    ['no authtoken', { addr: 1, authtoken: '' }, /^ConfigError: `authtoken` is missing/],
    ['a bad server', { addr: 1, server: 'http://x' }, /^ConfigError: `server` must be `host:port`/],
    ['too many connections', { addr: 1, connections: 17 }, /^ConfigError: `connections` must be `auto` or a number/],
    ['half a connection', { addr: 1, connections: 1.5 }, /^ConfigError: `connections` must be `auto` or a number/],
    ['a bad CA', { addr: 1, ca: '/none' }, /^ConfigError: `ca` cannot be read/],
    ['a server that is not there', { addr: 1, server: '127.0.0.1:1' }, /^AgentFault: nothing listens at/],
  ]
  for (const [name, given, says] of wrong) {
    test(`rejects ${name}, and leaves no session behind`, async () => {
      // JavaScript programs have no type checker.
      await assert.rejects(forward({ ...here, ...given } as Parameters<typeof forward>[0]), says)
      while (testServer.connections > 0) await new Promise((resolve) => setImmediate(resolve))
    })
  }

  test('waits for a server when told to', async () => {
    const port = await portToKeep()
    const events: ConnectionEvent[] = []
    const opening = forward({
      ...here,
      server: `127.0.0.1:${port}`,
      addr: 3000,
      wait: true,
      onEvent: (event) => events.push(event),
    })
    while (events.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const late = await TestServer.start({ ...identity, port })
    const tunnel = await opening
    assert.equal(events[0]?.type, 'offline')
    assert.ok(events.some(({ type }) => type === 'online'))
    await tunnel.close()
    await late.close()
  })
})

describe('listen', () => {
  test('serves with an HTTP server that listens on no port', async () => {
    const server = createServer((_, response) => response.end('from the process'))
    const tunnel = await listen(server, here)
    assert.match(await get(tunnel.id), /200 OK[\s\S]*from the process$/)
    await tunnel.close()
  })

  test('serves with a function, which is given the visitor', async () => {
    const tunnel = await listen((connection, { address }) => connection.end(`hello ${address}`), {
      ...here,
      proto: 'tcp',
    })
    assert.match(tunnel.url, /^tcp:\/\//)
    assert.equal(await get(tunnel.id), 'hello 192.0.2.1:4711')
    await tunnel.close()
  })
})

test('one session can have several tunnels', async () => {
  const connection = await connect(here)
  const sessions = testServer.sessions.length
  const one = await connection.forward({ addr: 3000, schemes: ['http', 'https'] })
  const two = await connection.listen((each) => each.end(), { proto: 'tcp' })
  assert.equal(testServer.sessions.length, sessions)
  assert.equal(one.urls.length, 2)
  assert.equal(one.urls[1], one.url.replace('https:', 'http:'))
  await one.close()
  assert.equal(testServer.latest.unbound.length, 2)
  testServer.stopTunnel(two.id, 'enough')
  await connection.close()
})
