/** A service manager holds the sockets of the server open: no connection is refused, even if the process ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { connect as connectAgent } from '../../src/agent/library.ts'
import { ApiClient } from '../support/api-client.ts'
import { freeTcpPort } from '../support/free-port.ts'
import { serveArgs } from '../support/server-process.ts'
import {
  descriptorOf,
  type Handed,
  openSocket,
  type ServiceManager,
  serviceManager,
} from '../support/service-manager.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-handed-'))
after(() => rmSync(root, { recursive: true, force: true }))

const names = ['api', 'metrics', 'agent', 'ssh', 'https', 'http'] as const

async function dial(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function isReady(manager: ServiceManager, starts: number): Promise<void> {
  const ready = () => manager.printed().split('\nListening: ').length > starts
  await until('the server is ready', ready, { limitMs: 60_000 })
}

test('no connection is refused while the server restarts after a signal or a crash', async (t) => {
  const tcpPort = await freeTcpPort()
  const open = await Promise.all([...names.map((name) => openSocket(name)), openSocket('tcp', tcpPort)])
  const port = Object.fromEntries(open.map((each) => [each.name, each.port])) as Record<(typeof names)[number], number>
  const dataDir = mkdtempSync(join(root, 'data-'))
  // The configured addresses are not used: they cannot be bound.
  const elsewhere = Object.fromEntries(names.map((name) => [`${name}-listen`, '192.0.2.1:1']))
  const manager = serviceManager(open, serveArgs({ dataDir, flags: { ...elsewhere, 'drain-timeout': '1s' } }))
  t.after(() => manager.end())
  for (const each of open) each.close()

  // A client that comes before the very first start waits too.
  const early = await ask(t, port.api, '/healthz')
  let pid = await manager.start()
  await isReady(manager, 1)
  assert.match(await early.answer, /^HTTP\/1\.1 200 /)
  assert.match(
    manager.printed(),
    new RegExp(`^Sockets from the service manager: api, metrics, agent, ssh, https, http, tcp ${tcpPort}$`, 'm'),
  )
  const [, apiKey = ''] = /^ +Admin API key +(\S+)$/m.exec(manager.printed()) ?? []
  const [, authtoken = ''] = /^ +Agent authtoken +(\S+)$/m.exec(manager.printed()) ?? []
  const { addresses } = (await (await fetch(`http://127.0.0.1:${port.api}/readyz`)).json()) as { addresses: unknown }
  assert.deepEqual(addresses, {
    api: `127.0.0.1:${port.api}`,
    metrics: `127.0.0.1:${port.metrics}`,
    agents: `127.0.0.1:${port.agent}`,
    ssh: `127.0.0.1:${port.ssh}`,
    https: `127.0.0.1:${port.https}`,
    http: `127.0.0.1:${port.http}`,
  })

  const api = new ApiClient(`http://127.0.0.1:${port.api}`, apiKey)
  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const { address } = await httpUpstream(t)
  const agent = await connectAgent({ server: `127.0.0.1:${port.agent}`, ca, authtoken })
  t.after(() => agent.close())
  const endpoint = await agent.forward({ addr: address, domain: 'kept.example.com' })
  assert.equal(endpoint.url, `https://kept.example.com:${port.https}`, 'URLs have the port of the passed socket')
  const tunnel = await agent.forward({ addr: address, proto: 'tcp', remote_addr: `localhost:${tcpPort}` })
  assert.equal(tunnel.url, `tcp://localhost:${tcpPort}`)

  for (const [starts, signal] of [[2, 'SIGTERM'] as const, [3, 'SIGKILL'] as const]) {
    process.kill(pid, signal)
    assert.equal(await manager.ended(), signal === 'SIGTERM' ? 0 : 137)
    // No server is running for these.
    const [health, page, metrics] = [
      await ask(t, port.api, '/healthz'),
      await ask(t, port.http, '/'),
      await ask(t, port.metrics, '/metrics'),
    ]
    const banner = once(await dial(t, port.ssh), 'data')
    const visitor = connectTls({ port: port.https, host: '127.0.0.1', servername: 'localhost', ca })
    const stranger = connectTls({ port: port.agent, host: '127.0.0.1', servername: 'localhost', ca })
    const greeted = Promise.all([visitor, stranger].map((socket) => once(socket, 'secureConnect')))
    const onPort = await dial(t, tcpPort)
    pid = await manager.start()
    assert.match(await health.answer, /^HTTP\/1\.1 200 /)
    assert.match(await page.answer, /^HTTP\/1\.1 4\d\d /)
    assert.match(await metrics.answer, /^HTTP\/1\.1 200 /)
    assert.match(String(await banner), /^SSH-2\.0-Postern/)
    await greeted
    for (const socket of [visitor, stranger, onPort]) socket.destroy()
    await isReady(manager, starts)
    const online = async () => (await api.get('/tunnels')).tunnels.length === 2
    await until('the agent is back', online)
  }
  process.kill(pid, 'SIGTERM')
  assert.equal(await manager.ended(), 0)
  assert.doesNotMatch(manager.printed(), /"level":"(error|fatal)"/)
})

const folder = mkdtempSync(join(root, 'bad-'))
const bad: readonly [what: string, open: (t: TestContext) => Promise<readonly Handed[]>, says: RegExp][] = [
  [
    'an unknown name',
    async (t) => [await opened(t, 'agents')],
    /^error: the socket `agents` \(descriptor 3\) .*did you mean `agent`\?$/m,
  ],
  [
    'a file',
    async () => [{ name: 'agent', fd: openSync('/dev/null', 'r') }],
    /^error: the socket `agent` \(descriptor 3\) is not a socket$/m,
  ],
  [
    'a Unix socket',
    async (t) => {
      const server = createServer().listen(join(folder, 'a.sock'))
      await once(server, 'listening')
      t.after(() => server.close())
      return [{ name: 'api', fd: descriptorOf(server) }]
    },
    /^error: the socket `api` \(descriptor 3\) is not a TCP socket that listens \(ENOTSUP\)$/m,
  ],
  [
    'a connection',
    async (t) => {
      const { fd, port } = await opened(t, 'http')
      const socket = await dial(t, port)
      return [
        { name: 'https', fd },
        { name: 'http', fd: descriptorOf(socket) },
      ]
    },
    /^error: the socket `http` \(descriptor 4\) is not a TCP socket that listens \(EINVAL\)$/m,
  ],
  [
    'a port that is not for TCP edges',
    async (t) => [await opened(t, 'tcp')],
    /^error: a socket was passed for port \d+, which is not in `tcp-ports`$/m,
  ],
]

for (const [what, open, says] of bad) {
  test(`a server that is passed ${what} says so, and does not start`, async (t) => {
    const manager = serviceManager(await open(t), serveArgs({ dataDir: join(folder, 'data') }))
    t.after(() => manager.end())
    await manager.start()
    assert.equal(await manager.ended(), 2)
    assert.match(manager.printed(), says)
    assert.doesNotMatch(manager.printed(), /Listening/)
  })
}

async function opened(t: TestContext, name: string) {
  const socket = await openSocket(name)
  t.after(() => socket.close())
  return socket
}

/** Sends a request; it is answered once a server is there. */
async function ask(t: TestContext, port: number, path: string): Promise<{ readonly answer: Promise<string> }> {
  const socket = await dial(t, port)
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`)
  return { answer: text(socket) }
}
