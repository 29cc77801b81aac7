/** SIGHUP: what a running server adopts from its settings file, and how it reports the rest. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'

const API_KEY = 'reload_api_key_of_the_first_admin_01'

describe('SIGHUP', () => {
  const root = mkdtempSync(join(tmpdir(), 'postern-reload-'))
  const config = join(root, 'postern.yml')
  let server: ServerProcess
  let printed = ''
  before(async () => {
    writeFileSync(config, 'region: here\n')
    const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY }
    // A flag overrides the file, and continues to.
    server = await serve({ dataDir: join(root, 'data'), env, flags: { config, 'max-headers': '50' } })
    server.child.stderr?.on('data', (piece: string) => {
      printed += piece
    })
  })
  after(async () => {
    const { code } = await server.stop()
    rmSync(root, { recursive: true, force: true })
    assert.equal(code, 0)
  })

  /** Makes the server read `file`; returns the line that it logs about it. */
  async function reload(file: string): Promise<Record<string, unknown>> {
    writeFileSync(config, file)
    const seen = printed.length
    server.kill('SIGHUP')
    const line = await until(
      'the server logs the outcome',
      () => /^.*"msg":"settings .*$/m.exec(printed.slice(seen))?.[0],
    )
    return JSON.parse(line)
  }

  const call = (path: string) =>
    fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${API_KEY}`, 'service-version': '2' } })

  const agentListener = async (options: ConnectionOptions) => {
    const ca = readFileSync(join(root, 'data', 'ca.pem'))
    const socket = connectTls({ host: '127.0.0.1', port: portOf(server.agents), ca, ...options })
    try {
      await once(socket, 'secureConnect')
    } finally {
      socket.destroy()
    }
  }

  /** The answer to a request at the plain listener; empty when the connection was closed instead. */
  const answerTo = (headers = ''): Promise<string> => {
    const socket = connect(portOf(server.http), '127.0.0.1')
    socket.end(`GET / HTTP/1.1\r\nhost: nobody.example.com\r\nconnection: close\r\n${headers}\r\n`)
    return text(socket).catch(() => '')
  }

  /** The first line of the answer. */
  const visit = async (headers = ''): Promise<string> => (await answerTo(headers)).split('\r\n')[0] ?? ''

  test('a setting that needs a restart is named, and changes nothing', async () => {
    const line = await reload('region: there\ntcp_ports: 30000-30001\n')
    assert.deepEqual(
      { level: line.level, changed: line.changed, needs_restart: line.needs_restart },
      { level: 'warn', changed: [], needs_restart: ['tcp-ports', 'region'] },
    )
    const { changed, needs_restart } = await reload('region: here\n')
    assert.deepEqual([changed, needs_restart], [[], undefined], 'as it was')
  })

  test('a flag of the start still wins over the file', async () => {
    assert.deepEqual((await reload('max_headers: 20\n')).changed, [])
  })

  test('a file with faults changes nothing, and all of them are named', async () => {
    await reload('api_url: https://api.example.com\n')
    for (const [file, fault] of [
      ['api_url: nonsense\nunknown: 1\n', /unknown.*api-url/],
      ['api_url: "https://other.example.com', /not valid YAML/],
      [`# ${'x'.repeat(40_000)}\n`, /more than 16384 bytes/],
    ] as const) {
      const line = await reload(file)
      assert.equal(line.level, 'error')
      assert.match(JSON.stringify(line.problems), fault)
    }
    rmSync(config)
    server.kill('SIGHUP')
    await until('it logs that there is no file', () => /there is no such file/.test(printed))
    const { keys } = (await (await call('/api_keys')).json()) as { keys: { uri: string }[] }
    assert.match(keys[0]?.uri ?? '', /^https:\/\/api\.example\.com\//)
    await reload('')
  })

  test('the door of agents gets a new name, and refuses older TLS', async () => {
    await assert.rejects(agentListener({ servername: 'added.example.com' }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
    await agentListener({ servername: 'localhost', maxVersion: 'TLSv1.2' })
    const { changed } = await reload('agent_names: added.example.com\ntls_min_version: 1.3\n')
    assert.deepEqual(changed, ['agent-names', 'tls-min-version'])
    await agentListener({ servername: 'added.example.com' })
    await assert.rejects(agentListener({ servername: 'localhost', maxVersion: 'TLSv1.2' }))
    await reload('')
    await agentListener({ servername: 'localhost', maxVersion: 'TLSv1.2' })
  })

  test('limits for visitors apply from the next connection on, and can be removed', async () => {
    const long = `x-long: ${'x'.repeat(10_000)}\r\n`
    assert.match(await visit(long), / 404 /)
    await reload('max_header_bytes: 8192\n')
    assert.match(await visit(long), / 431 /)
    await reload('max_requests_per_source: 1\n')
    const answers = []
    for (let i = 0; i < 4; i++) answers.push(await visit())
    assert.ok(
      answers.some((answer) => / 503 /.test(answer)),
      answers.join(),
    )
    await reload('trusted_proxies: 127.0.0.0/8\n')
    assert.equal(await visit(), '', 'a trusted proxy must say who is visiting')
    await reload('')
    for (let i = 0; i < 4; i++) assert.match(await visit(), / 404 /)
  })

  test('so does the limit of the API', async () => {
    await reload('api_rate_limit: 1\n')
    const codes = [await call('/api_keys'), await call('/api_keys')].map(({ status }) => status)
    assert.equal(codes.at(-1), 429)
    await reload('')
    assert.equal((await call('/api_keys')).status, 200)
  })

  test("errors lose and regain ngrok's number, even for unreadable requests", async () => {
    const bad = 'no header\r\n'
    const errors = async () => [await answerTo(), await answerTo(bad)]
    const both = [/^HTTP\/1\.1 404 .*postern-error-code: /s, /^HTTP\/1\.1 400 .*postern-error-code: /s]
    for (const [file, number] of [
      ['', true],
      ['ngrok_error_header: off\n', false],
      ['ngrok_error_header: on\n', true],
    ] as const) {
      await reload(file)
      for (const [i, answer] of (await errors()).entries()) {
        assert.match(answer, both[i] ?? /never/)
        assert.equal(/\r\nngrok-error-code: ERR_NGROK_\d+\r\n/.test(answer), number, answer)
      }
    }
    await reload('')
  })

  test('the log level changes both ways, and is logged each time', async () => {
    assert.deepEqual((await reload('log_level: error\n')).changed, ['log-level'])
    const seen = printed.length
    await call('/api_keys')
    assert.deepEqual((await reload('log_level: info\n')).changed, ['log-level'])
    assert.doesNotMatch(printed.slice(seen), /api request/)
    await call('/api_keys')
    await until('requests are logged again', () => /api request/.test(printed.slice(seen)))
  })
})

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
