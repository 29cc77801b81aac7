/** The API over TLS, without a proxy in front. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { type AcmeServer, startAcmeServer } from '../support/acme-server.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { visit } from '../support/visitor.ts'

let acme: AcmeServer
let platform: Platform
let port: string

before(async () => {
  acme = await startAcmeServer()
  const flags = { 'api-tls': 'on', 'api-url': 'https://api.example.com', 'acme-directory': acme.directory }
  platform = await startPlatform({ flags: { ...flags, 'max-connections': '4' } })
  port = new URL(platform.url).port
  acme.mood.nodes = [platform]
})
after(async () => {
  await platform.stop()
  await acme.stop()
})

const key = () => ({ authorization: `Bearer ${platform.apiKey}`, 'service-version': '2' })

test('it is served with a certificate of our own authority, and no other, until it has another', async () => {
  const listed = await visit(`https://localhost:${port}`, platform, { path: '/api_keys', headers: key() })
  assert.equal(listed.status, 200, listed.text)
  assert.equal(JSON.parse(listed.text).uri, 'https://api.example.com/api_keys')
  await assert.rejects(visit(`https://stranger.example.com:${port}`, platform), /altnames/)
})

test('its name gets a certificate of the authority, which is shown to clients that ask for the name', async () => {
  const ask = { path: '/healthz' }
  const served = await until('the API has a certificate', () =>
    visit(`https://api.example.com:${port}`, acme, ask).catch(() => undefined),
  )
  assert.equal(served.status, 200)
  assert.equal((await visit(`https://localhost:${port}`, platform, ask)).status, 200)
})

test('a client that ends its side after the request is answered', async () => {
  const tcp = connect({ host: '127.0.0.1', port: Number(port), allowHalfOpen: true })
  const socket = connectTls({ socket: tcp, servername: 'localhost', ca: platform.ca })
  const headers = { host: 'localhost', connection: 'close', ...key() }
  const head = ['GET /api_keys HTTP/1.1', ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)]
  socket.end(`${head.join('\r\n')}\r\n\r\n`)
  assert.match(await text(socket), /^HTTP\/1\.1 200 /)
})

test('plain HTTP gets no answer', async () => {
  const plain = request({ host: '127.0.0.1', port, path: '/healthz' }).end()
  const [error] = (await once(plain, 'error')) as [Error]
  assert.ok(error)
})

test('the page signs in with a cookie that browsers send only over TLS', async () => {
  const origin = `https://localhost:${port}`
  const { status, headers } = await visit(origin, platform, {
    method: 'POST',
    path: '/page/session',
    headers: { origin, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: platform.apiKey }),
  })
  assert.equal(status, 200)
  assert.match(String(headers['set-cookie']), /^__Host-postern-page=.*; Secure$/)
})

test('`postern api` trusts only the CA that it is given', async () => {
  const env = { POSTERN_API_URL: `https://localhost:${port}`, POSTERN_API_KEY: platform.apiKey }
  const call = async (more: readonly string[], given = {}) => {
    const terminal = testTerminal({ env: { ...env, ...given }, cwd: platform.dataDir })
    return { code: await run(['api', 'api-keys', 'list', ...more], terminal), ...terminal.printed }
  }
  assert.match((await call([])).err, /certificate is not trusted .*--ca/)
  for (const [more, given] of [[['--ca', 'ca.pem'], {}] as const, [[], { POSTERN_API_CA: 'ca.pem' }] as const]) {
    const { code, out, err } = await call(more, given)
    assert.equal(code, 0, err)
    assert.match(out, /^ak_/)
  }
  assert.match((await call(['--ca', 'none.pem'])).err, /--ca cannot be read: ENOENT none\.pem/)
})

test('`postern doctor` checks the server, and says what to do when it is not running', async () => {
  const metrics = new URL(platform.metricsUrl).host
  const doctor = async (...more: string[]) => {
    const terminal = testTerminal({ env: { POSTERN_API_KEY: platform.apiKey }, cwd: platform.dataDir })
    const args = ['doctor', '--data-dir', '.', '--metrics-listen', metrics, '--json', ...more]
    const code = await run(args, terminal)
    return { code, found: JSON.parse(terminal.printed.out) as { check: string; state: string }[] }
  }
  const { code, found } = await doctor('--api-tls', '--api-listen', `127.0.0.1:${port}`)
  const states = new Map(found.map(({ check, state }) => [check, state]))
  for (const check of ['server', 'database', 'listener https', 'listener agents', 'certificates', 'orders', 'names']) {
    assert.equal(states.get(check), 'well', `${check} ${JSON.stringify(found)}`)
  }
  assert.equal(code, found.some(({ state }) => state === 'to do') ? 1 : 0)
  const damaged = join(platform.dataDir, 'damaged')
  await mkdir(damaged)
  await writeFile(join(damaged, 'ca.pem'), 'no certificate')
  const there = await doctor('--data-dir', damaged, '--api-tls', '--api-listen', `127.0.0.1:${port}`)
  assert.equal(there.found.find(({ check }) => check === 'ca.pem')?.state, 'to do')
  const away = await doctor('--api-listen', '127.0.0.1:1')
  assert.equal(away.code, 1)
  assert.deepEqual(away.found[0]?.state, 'to do')
})

test('caps count connections over TLS', async () => {
  const kept: Socket[] = []
  const refused = await until('the door is full', async () => {
    const socket = connectTls({ host: '127.0.0.1', port: Number(port), ca: platform.ca })
    await once(socket, 'secureConnect')
    kept.push(socket.on('error', () => {}))
    const { status, headers } = await visit(`https://localhost:${port}`, platform, {
      path: '/api_keys',
      headers: key(),
    })
    return status === 503 && headers['retry-after']
  })
  assert.equal(refused, '1')
  for (const socket of kept) socket.destroy()
})

test('a silent connection does not delay shutdown', async () => {
  const silent = connect(Number(port), '127.0.0.1')
  await once(silent, 'connect')
  const closed = once(silent, 'close')
  await platform.stop()
  await closed
})
