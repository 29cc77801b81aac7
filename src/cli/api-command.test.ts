import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, test } from 'node:test'
import { run } from './program.ts'
import { testTerminal } from './testing/test-terminal.ts'

interface Received {
  readonly method: string | undefined
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

type Reply = (received: Received) => {
  status: number
  body?: unknown
  /** Sent instead of a JSON body. */
  text?: string
  headers?: Record<string, string>
}

let received: Received[] = []
let reply: Reply = () => ({ status: 200, body: {} })
const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request)
  const { method, url = '', headers } = request
  const seen = { method, url, headers, body: body === '' ? undefined : JSON.parse(body) }
  received.push(seen)
  const { status, body: answered, text: raw, headers: sent = {} } = reply(seen)
  response.writeHead(status, { 'content-type': 'application/json', ...sent })
  response.end(raw ?? (answered === undefined ? undefined : JSON.stringify(answered)))
}

let base = ''
const folder = mkdtempSync(join(tmpdir(), 'postern-api-'))

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.close()
  server.closeAllConnections()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  received = []
  reply = () => ({ status: 200, body: {} })
})

const key = 'test_key_0123456789'

async function api(args: readonly string[], given: Parameters<typeof testTerminal>[0] = {}) {
  const terminal = testTerminal({ env: { POSTERN_API_URL: base, POSTERN_API_KEY: key }, cwd: folder, ...given })
  const code = await run(['api', ...args], terminal)
  return { code, ...terminal.printed }
}

interface Case {
  readonly args: readonly string[]
  readonly sends: string
  readonly body?: unknown
}

const route = ['--edge-id', 'edghts_1']
const mapped: Readonly<Record<string, Case>> = {
  'numbers by key': {
    args: ['weighted-backends', 'create', '--backends', 'bkdtg_x=10', '--backends', 'bkdsc_y=0'],
    sends: 'POST /backends/weighted',
    body: { backends: { bkdtg_x: 10, bkdsc_y: 0 } },
  },
  'a field to clear': {
    args: ['reserved-domains', 'clear-certificate-management-policy', 'rd_1'],
    sends: 'DELETE /reserved_domains/rd_1/certificate_management_policy',
  },
  strings: {
    args: ['api-keys', 'create', '--description', 'a key', '--owner-id', 'usr_1'],
    sends: 'POST /api_keys',
    body: { description: 'a key', owner_id: 'usr_1' },
  },
  'an empty string': {
    args: ['api-keys', 'update', 'ak_1', '--metadata', ''],
    sends: 'PATCH /api_keys/ak_1',
    body: { metadata: '' },
  },
  'no fields at all': { args: ['api-keys', 'create'], sends: 'POST /api_keys', body: {} },
  'a number': {
    args: ['http-response-backends', 'create', '--status-code', '503', '--body', 'soon'],
    sends: 'POST /backends/http_response',
    body: { status_code: 503, body: 'soon' },
  },
  'a repeated list': {
    args: ['ssh-credentials', 'update', 'sshcr_1', '--acl', 'bind:a', '--acl', 'bind:b,c'],
    sends: 'PATCH /ssh_credentials/sshcr_1',
    body: { acl: ['bind:a', 'bind:b,c'] },
  },
  'a list as JSON': {
    args: ['tcp-edges', 'update', 'edgtcp_1', '--hostports', '[]'],
    sends: 'PATCH /edges/tcp/edgtcp_1',
    body: { hostports: [] },
  },
  'a repeated map': {
    args: ['http-response-backends', 'create', '--headers', 'x-a=1', '--headers', 'x-b=c=d'],
    sends: 'POST /backends/http_response',
    body: { headers: { 'x-a': '1', 'x-b': 'c=d' } },
  },
  'a map as JSON': {
    args: ['http-response-backends', 'create', '--headers', '{"x-a":"1"}'],
    sends: 'POST /backends/http_response',
    body: { headers: { 'x-a': '1' } },
  },
  'a map key that is special in JavaScript': {
    args: ['http-response-backends', 'create', '--headers', '__proto__=x'],
    sends: 'POST /backends/http_response',
    body: JSON.parse('{"headers":{"__proto__":"x"}}'),
  },
  'a module as JSON': {
    args: ['tcp-edges', 'create', '--backend', '{"backend_id":"bkdtg_1"}'],
    sends: 'POST /edges/tcp',
    body: { backend: { backend_id: 'bkdtg_1' } },
  },
  'a choice': {
    args: ['routes', 'create', ...route, '--match-type', 'exact_path', '--match', '/x'],
    sends: 'POST /edges/https/edghts_1/routes',
    body: { match_type: 'exact_path', match: '/x' },
  },
  'flags over --data': {
    args: ['api-keys', 'create', '--data', '{"description":"a","metadata":"m"}', '--description', 'b'],
    sends: 'POST /api_keys',
    body: { description: 'b', metadata: 'm' },
  },
  '--data from a file': {
    args: ['api-keys', 'create', '--data', '@body.json'],
    sends: 'POST /api_keys',
    body: { metadata: 'file' },
  },
  '--data from standard input': {
    args: ['api-keys', 'create', '--data', '-'],
    sends: 'POST /api_keys',
    body: { metadata: 'stdin' },
  },
  'a get': { args: ['tunnels', 'get', 'tn_1'], sends: 'GET /tunnels/tn_1' },
  'a get below a parent': {
    args: ['routes', 'get', 'edghtsrt_1', ...route],
    sends: 'GET /edges/https/edghts_1/routes/edghtsrt_1',
  },
  'a delete': { args: ['api-keys', 'delete', 'ak_1'], sends: 'DELETE /api_keys/ak_1' },
  'an agent command': {
    args: ['tunnel-sessions', 'update', 'ts_1'],
    sends: 'POST /tunnel_sessions/ts_1/update',
    body: {},
  },
  'a replay': {
    args: ['exchanges', 'replay', 'ex_1', '--path', '/b', '--headers', '[{"name":"a","value":"b"}]'],
    sends: 'POST /exchanges/ex_1/replay',
    body: { path: '/b', headers: [{ name: 'a', value: 'b' }] },
  },
  'a certificate that is to be replaced': {
    args: ['tls-certificates', 'renew', 'cert_1'],
    sends: 'POST /tls_certificates/cert_1/renew',
    body: {},
  },
  'a certificate that is tried for again': {
    args: ['reserved-domains', 'retry', 'rd_1'],
    sends: 'POST /reserved_domains/rd_1/retry',
    body: {},
  },
  'a HAR document': { args: ['exchanges', 'har', 'ex_1'], sends: 'GET /exchanges/ex_1/har' },
  'a command for curl': { args: ['exchanges', 'curl', 'ex_1'], sends: 'GET /exchanges/ex_1/curl' },
  'a module that is set': {
    args: ['tcp-edges', 'set-module', 'edgtcp_1', 'ip-restriction', '--data', '{"ip_policy_ids":[]}'],
    sends: 'PUT /edges/tcp/edgtcp_1/ip_restriction',
    body: { ip_policy_ids: [] },
  },
  'a module in its other spelling': {
    args: ['tcp-edges', 'set-module', 'edgtcp_1', 'traffic-policy', '--data', '{"value":"{}"}'],
    sends: 'PUT /edges/tcp/edgtcp_1/traffic_policy',
    body: { value: '{}' },
  },
  'a module that is read': {
    args: ['routes', 'get-module', 'edghtsrt_1', 'oidc', ...route],
    sends: 'GET /edges/https/edghts_1/routes/edghtsrt_1/oidc',
  },
  'a module that is removed': {
    args: ['tls-edges', 'delete-module', 'edgtls_1', 'policy'],
    sends: 'DELETE /edges/tls/edgtls_1/policy',
  },
}
for (const [name, { args, sends, body }] of Object.entries(mapped)) {
  test(`sends ${name}`, async () => {
    writeFileSync(join(folder, 'body.json'), '{"metadata":"file"}')
    const { code, err } = await api(args, { input: '{"metadata":"stdin"}' })
    assert.equal(err, '')
    assert.equal(code, 0)
    assert.equal(received.length, 1)
    const [only] = received
    assert.equal(`${only?.method} ${only?.url}`, sends)
    assert.deepEqual(only?.body, body)
    assert.equal(only?.headers.authorization, `Bearer ${key}`)
    assert.equal(only?.headers['service-version'], '2')
  })
}

for (const word of ['tcp-edges', 'tcp_edges', 'tcp-edge', 'tcp_edge', 'edges/tcp', 'edges-tcp']) {
  test(`knows TCP edges as ${word}`, async () => {
    assert.equal((await api([word, 'get', 'edgtcp_1'])).code, 0)
    assert.equal(received[0]?.url, '/edges/tcp/edgtcp_1')
  })
}

const misused: readonly [name: string, args: readonly string[], says: RegExp][] = [
  ['a mistyped resource', ['tcp-egdes', 'list'], /unknown command 'tcp-egdes'; did you mean 'tcp-edges'\?/],
  ['a mistyped verb', ['api-keys', 'lst'], /unknown command 'lst'; did you mean 'list'\?/],
  [
    'a mistyped flag',
    ['api-keys', 'create', '--desciption', 'x'],
    /unknown option '--desciption'\n\(Did you mean --description\?\)/,
  ],
  ['a mistyped module', ['tcp-edges', 'get-module', 'e_1', 'ip_restrction'], /did you mean `ip_restriction`\?/],
  ['a verb that the resource lacks', ['tunnels', 'delete', 'tn_1'], /unknown command 'delete'/],
  ['a missing id', ['api-keys', 'get'], /missing required argument 'id'/],
  ['a missing parent', ['routes', 'get', 'edghtsrt_1'], /required option '--edge-id <id>' not specified/],
  ['an id that is a path', ['api-keys', 'delete', '../edges'], /an id has only letters/],
  ['a dotted id', ['api-keys', 'delete', '..'], /an id has only letters/],
  [
    'a number that is none',
    ['http-response-backends', 'create', '--status-code', 'x'],
    /--status-code must be a number/,
  ],
  ['a map without =', ['http-response-backends', 'create', '--headers', 'x'], /--headers must be key=value/],
  ['--data that is no JSON', ['api-keys', 'create', '--data', '{hunter2'], /--data is not valid JSON/],
  ['--data that is no object', ['api-keys', 'create', '--data', '[]'], /--data must be a JSON object/],
  ['--data from no file', ['api-keys', 'create', '--data', '@none.json'], /--data cannot read none\.json: ENOENT/],
  ['a limit of 0', ['api-keys', 'list', '--limit', '0'], /It must be a whole number, 1 or more/],
  ['a bad address', ['api-keys', 'list', '--api-url', 'localhost:7400'], /--api-url must be an `http:\/\/`/],
]
for (const [name, args, says] of misused) {
  test(`${name} is a usage error, and nothing is sent`, async () => {
    const { code, err } = await api(args)
    assert.match(err, says)
    assert.ok(!err.includes('hunter2'))
    assert.equal(code, 2)
    assert.deepEqual(received, [])
  })
}

test('without a key the error says how to get one', async () => {
  const { code, err } = await api(['api-keys', 'list'], { env: { POSTERN_API_URL: base } })
  assert.match(err, /POSTERN_API_KEY.*postern admin create-key/)
  assert.equal(code, 2)
})

test('a key that cannot be a header is not repeated', async () => {
  const { code, err } = await api(['api-keys', 'list', '--api-key', 'hunter2\nx'])
  assert.equal(code, 2)
  assert.ok(!err.includes('hunter2'), err)
})

/** Pages of two items, whose links name a host that must not be called. */
function paged(count: number): Reply {
  return ({ url }) => {
    const query = new URL(url, base).searchParams
    const from = Number(query.get('before_id') ?? 0)
    const size = Math.min(2, Number(query.get('limit')))
    const keys = Array.from({ length: Math.min(size, count - from) }, (_, i) => ({
      id: `ak_${from + i}`,
      description: 'd',
    }))
    const next =
      from + keys.length < count ? `https://elsewhere.invalid/api_keys?before_id=${from + keys.length}&limit=2` : null
    return { status: 200, body: { keys, uri: 'x', next_page_uri: next } }
  }
}

test('list follows all pages, and uses only the query of the next link', async () => {
  reply = paged(5)
  const { out } = await api(['api-keys', 'list', '--json'])
  assert.deepEqual(
    JSON.parse(out).map((each: { id: string }) => each.id),
    ['ak_0', 'ak_1', 'ak_2', 'ak_3', 'ak_4'],
  )
  assert.equal(received.length, 3)
})

test('list sends its filters', async () => {
  reply = () => ({ status: 200, body: { exchanges: [], next_page_uri: null } })
  const { code } = await api(['exchanges', 'list', '--edge-id', 'edghts_1', '--status', '502', '--path', '/a b'])
  assert.deepEqual([code, received[0]?.url], [0, '/exchanges?limit=100&edge_id=edghts_1&path=%2Fa+b&status=502'])
})

test('list stops at --limit', async () => {
  reply = paged(5)
  assert.equal((await api(['api-keys', 'list', '--limit', '3'])).out.trim().split('\n').length, 3)
  assert.equal(received.length, 2)
})

test('list prints tabs without heading for programs, and an aligned table on a terminal', async () => {
  const item = {
    id: 'ak_1',
    owner_id: 'usr_1',
    description: `${'x'.repeat(60)}\n\u001b[2J`,
    created_at: '2026-01-01T00:00:00Z',
  }
  reply = () => ({ status: 200, body: { keys: [item], next_page_uri: null } })
  const { out: tabs } = await api(['api-keys', 'list'])
  assert.equal(tabs, `ak_1\tusr_1\t${'x'.repeat(60)}\\n\\u001b[2J\t2026-01-01T00:00:00Z\n`)
  const { out: table } = await api(['api-keys', 'list'], { isTTY: true })
  assert.match(table, /^ID {4}OWNER_ID {2}DESCRIPTION +CREATED_AT\nak_1 {2}usr_1 {5}x+… {2}2026-01-01T00:00:00Z\n$/)
})

test('list of TLS certificates shows their names and when they expire', async () => {
  const item = {
    id: 'cert_1',
    description: 'shop',
    subject_common_name: 'app.example.com',
    subject_alternative_names: { dns_names: ['app.example.com', '*.example.com'], ips: [] },
    not_after: '2027-01-01T00:00:00Z',
    issuer_common_name: 'Root',
    created_at: '2026-01-01T00:00:00Z',
  }
  reply = () => ({ status: 200, body: { tls_certificates: [item], next_page_uri: null } })
  const { out: tabs } = await api(['tls-certificates', 'list'])
  assert.equal(tabs, 'cert_1\tapp.example.com,*.example.com\t2027-01-01T00:00:00Z\tRoot\tshop\t2026-01-01T00:00:00Z\n')
  const { out: table } = await api(['tls-certificates', 'list'], { isTTY: true })
  assert.match(table, /^ID +DNS_NAMES +NOT_AFTER +ISSUER_COMMON_NAME +DESCRIPTION +CREATED_AT\n/)
})

test('get prints fields, or JSON', async () => {
  reply = () => ({ status: 200, body: { id: 'ak_1', token: null, acl: ['a', 'b'], backend: { id: 'x' } } })
  assert.equal((await api(['api-keys', 'get', 'ak_1'])).out, 'id\tak_1\ntoken\t\nacl\ta,b\nbackend\t{"id":"x"}\n')
  assert.equal(JSON.parse((await api(['api-keys', 'get', 'ak_1', '--json'])).out).id, 'ak_1')
})

test('exchanges are printed as they come, as lines or JSON, until the server ends the stream', async () => {
  const exchange = { id: 'ex_1', method: 'GET', host: 'a.test', path: '/\u001b[2J', status: 200, error_code: null }
  reply = () => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    text: `: exchanges follow\n\nevent: following\ndata: {}\n\nevent: missed\ndata: {"count":3}\n\nid: ex_1\nevent: exchange\ndata: ${JSON.stringify(exchange)}\n\n`,
  })
  const { code, out, err } = await api(['exchanges', 'stream', '--method', 'GET'])
  assert.equal(received[0]?.url, '/exchanges/stream?method=GET')
  assert.match(out, /^ex_1\tGET\ta\.test\t\/\\u001b\[2J\t200\t/)
  assert.match(err, /"count":3.*\nerror: the server ended the stream/)
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse((await api(['exchanges', 'stream', '--json'])).out), exchange)
})

test('a stream that is refused says why', async () => {
  reply = () => ({ status: 503, body: { error_code: 'ERR_SERVER_BUSY', msg: 'too many streams' } })
  const { code, err } = await api(['exchanges', 'stream'])
  assert.deepEqual([code, err], [1, 'error: too many streams (ERR_SERVER_BUSY)\n'])
})

test('a curl command is printed unchanged', async () => {
  reply = () => ({ status: 200, body: { command: "curl 'https://a.test/'" } })
  assert.equal((await api(['exchanges', 'curl', 'ex_1'])).out, "curl 'https://a.test/'\n")
})

test('a delete prints nothing and succeeds', async () => {
  reply = () => ({ status: 204 })
  assert.deepEqual(await api(['api-keys', 'delete', 'ak_1']), { code: 0, out: '', err: '' })
})

test('an error of the API is printed with its code and operation', async () => {
  reply = () => ({
    status: 404,
    body: { error_code: 'ERR_NOT_FOUND', status_code: 404, msg: 'no such key', details: { operation_id: 'op_1' } },
  })
  const { code, out, err } = await api(['api-keys', 'get', 'ak_1'])
  assert.equal(err, 'error: no such key (ERR_NOT_FOUND, operation op_1)\n')
  assert.equal(out, '')
  assert.equal(code, 1)
})

const strange: readonly [name: string, reply: Reply, says: RegExp][] = [
  ['a page of another server', () => ({ status: 502, body: 'x' }), /did not respond like the Postern API \(HTTP 502\)/],
  ['a redirect', () => ({ status: 301, headers: { location: 'https://x/' } }), /redirects to https:\/\/x\//],
  ['a list without its array', () => ({ status: 200, body: {} }), /no list `keys`/],
  [
    'a page that is its own next page',
    ({ url }) => ({ status: 200, body: { keys: [], next_page_uri: `http://x${url}` } }),
    /returned the same page twice/,
  ],
]
for (const [name, given, says] of strange) {
  test(`fails plainly on ${name}`, async () => {
    reply = given
    const { code, err } = await api(['api-keys', 'list'])
    assert.match(err, says)
    assert.equal(code, 1)
  })
}

test('the error for an unreachable server says what to do', async () => {
  const closed = createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  const { code, err } = await api(['api-keys', 'list', '--api-url', `http://127.0.0.1:${port}`])
  assert.match(err, /cannot reach the API at .*: nothing is listening there; start the server with `npx postern serve`/)
  assert.equal(code, 1)
})

test('without arguments it lists every resource', async () => {
  const { code, out } = await api([])
  assert.equal(code, 0)
  assert.match(out, /^api-keys\tcreate list get update delete\t/)
  assert.match(out, /^tunnel-sessions\tlist get restart stop update\t/m)
})
