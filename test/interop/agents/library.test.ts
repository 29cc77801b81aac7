/** Our agent inside a program: `import { forward } from 'postern'`, against a whole platform. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { AgentFault, connect, forward, listen } from '../../../src/agent/library.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { assertNobodyOnline, sessionsOnline } from '../../support/presence.ts'
import { httpUpstream, type Seen, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'

let platform: Platform
before(async () => {
  platform = await startPlatform({ flags: { 'drain-timeout': '1s' } })
})
after(() => platform.stop())

const at = () => ({ server: platform.agents, ca: platform.caFile, authtoken: platform.authtoken })

test('forward: one call to a URL, and nothing is left when it is closed', async (t) => {
  const { port } = await httpUpstream(t)
  const tunnel = await forward({ ...at(), addr: port, host_header: 'inside.example.com', session_metadata: 'one call' })
  const seen: Seen = JSON.parse((await visit(tunnel.url, platform, { path: '/there' })).text)
  assert.deepEqual([seen.url, seen.headers.host], ['/there', 'inside.example.com'])
  const shown = await platform.admin.get(`/tunnels/${tunnel.id}`)
  assert.equal(shown.public_url, tunnel.url)
  const { sessions } = await sessionsOnline(platform, 1)
  assert.equal(sessions[0].metadata, 'one call')
  await tunnel.close()
  await sessionsOnline(platform, 0)
  await assertNobodyOnline(platform)
})

test('forward: both schemes have the same name', async (t) => {
  const { port } = await httpUpstream(t)
  const tunnel = await forward({ ...at(), addr: port, schemes: ['http', 'https'], subdomain: 'twice' })
  const { httpsPort, httpPort } = platform
  assert.deepEqual(tunnel.urls, [`https://twice.localhost:${httpsPort}`, `http://twice.localhost:${httpPort}`])
  for (const url of tunnel.urls) assert.equal((await visit(url, platform)).status, 200)
  await tunnel.close()
})

test('listen: a server without a port of its own', async () => {
  const server = createServer((request, response) => response.end(`inside ${request.url}`))
  const tunnel = await listen(server, at())
  for (const path of ['/a', '/b']) {
    assert.equal((await visit(tunnel.url, platform, { path })).text, `inside ${path}`)
  }
  await tunnel.close()
})

test('connect: several tunnels on one session', async (t) => {
  const connection = await connect(at())
  const [web, bytes] = [await httpUpstream(t), await tcpUpstream(t)]
  const https = await connection.forward({ addr: web.address, hostname: 'several.example.com' })
  const tcp = await connection.forward({ addr: bytes.address, proto: 'tcp' })
  const inside = await connection.listen((socket) => void socket.end('from inside'), { proto: 'tcp' })
  assert.equal((await visit(https.url, platform)).status, 200)
  assert.equal(await exchange(await dialTcp(tcp.url), 'bytes'), 'bytes')
  assert.equal(await exchange(await dialTcp(inside.url), ''), 'from inside')
  const { tunnels } = await sessionsOnline(platform, 1)
  assert.equal(tunnels.length, 3)
  await connection.close()
  await sessionsOnline(platform, 0)
  await assertNobodyOnline(platform)
})

test('a refusal of the server rejects with its code, and leaves no session', async () => {
  const isRefused = (serverCode: string) => (error: unknown) =>
    error instanceof AgentFault && error.code === 'refused' && error.serverCode === serverCode
  await assert.rejects(forward({ ...at(), authtoken: 'short', addr: 1 }), isRefused('ERR_NGROK_105'))
  await assert.rejects(forward({ ...at(), addr: 1, domain: 'under_score.example.com' }), isRefused('ERR_NGROK_355'))
  await sessionsOnline(platform, 0)
})

test('the program ends when its last tunnel is closed, without another call', async () => {
  const library = new URL('../../../src/agent/library.ts', import.meta.url).href
  const program = `
    const { forward } = await import(${JSON.stringify(library)})
    const tunnel = await forward({ ...${JSON.stringify(at())}, addr: 1 })
    process.stdout.write(tunnel.url)
    await tunnel.close()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (text) => {
    printed += text
  })
  const [code] = await once(child, 'close')
  assert.deepEqual([code, /^https:\/\/.*\.localhost:\d+$/.test(printed)], [0, true], printed)
})
