import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { MAX_PRICE } from './budget.ts'
import { Evaluator } from './evaluator.ts'
import { Moment } from './moment.ts'
import { parseHere } from './parsed.ts'
import { ownLists, type Site } from './policy-phases.ts'
import type { PolicyRequest } from './policy-traffic.ts'

const evaluator = new Evaluator()
const site: Site = { place: 'route', phase: 'request', lists: ownLists }
const peer = { ip: '10.1.2.3', port: 50_000, serverIp: '10.0.0.1', serverPort: 443, startedAt: 0 }

function moment(): Moment {
  const request: PolicyRequest = {
    peer,
    tls: undefined,
    edgeId: 'edghts_1',
    routeId: 'edghtsrt_1',
    startedAt: 0,
    scheme: 'https',
    version: '1.1',
    method: 'GET',
    host: 'a.test',
    authority: 'a.test',
    target: '/x/y?q=1',
    path: '/x/y',
    query: 'q=1',
    headers: HeaderList.of([
      ['x-a', 'One'],
      ['x-a', 'two'],
    ]),
    found: new Map(),
    bodyLength: 'none' as const,
    replacedHost: undefined,
    replacedTarget: undefined,
    readBody: async () => Buffer.alloc(0),
  }
  const connection = { peer, edgeId: 'edghts_1', serverName: 'a.test', tls: undefined }
  return new Moment({ connection, request, now: 0, region: 'eu' })
}

/** The parts of an expression with their values, from the outside in. */
function partsOf(text: string): [string, unknown][] {
  const parts: [number, string, unknown][] = []
  const note = (index: number, part: string, value: Parameters<Evaluator['plain']>[0]): void => {
    parts.push([index, part, evaluator.plain(value)])
  }
  try {
    evaluator.compile(text, site, new Set(), { parsed: parseHere(text), note })(moment())
  } catch {
    // An expression that fails still has parts.
  }
  return parts.sort(([a], [b]) => a - b).map(([, part, value]) => [part, value])
}

const cases: readonly (readonly [string, readonly (readonly [string, unknown])[]])[] = [
  ['true', []],
  ["req.method == 'GET'", [['req.method', 'GET']]],
  [
    "req.method == 'PUT' || req.url.path.startsWith('/x')",
    [
      ['req.method == "PUT"', false],
      ['req.method', 'GET'],
      ['req.url.path.startsWith("/x")', true],
      ['req.url.path', '/x/y'],
    ],
  ],
  // The right side is not evaluated.
  [
    "req.method == 'PUT' && req.host == 'a.test'",
    [
      ['req.method == "PUT"', false],
      ['req.method', 'GET'],
    ],
  ],
  [
    "!(conn.client_port > 1024 ? inCidrRange(conn.client_ip, '10.0.0.0/8') : false)",
    [
      ['(conn.client_port > 1024) ? inCidrRange(conn.client_ip, "10.0.0.0/8") : false', true],
      ['conn.client_port > 1024', true],
      ['conn.client_port', 50_000],
      ['inCidrRange(conn.client_ip, "10.0.0.0/8")', true],
      ['conn.client_ip', '10.1.2.3'],
    ],
  ],
  [
    "req.method == 'GET' && req.host == 'a.test' && req.version == 'x'",
    [
      ['req.method == "GET"', true],
      ['req.method', 'GET'],
      ['req.host == "a.test"', true],
      ['req.host', 'a.test'],
      ['req.version == "x"', false],
      ['req.version', 'HTTP/1.1'],
    ],
  ],
  // An index is shown together with what it indexes; list literals and names of functions are not shown.
  [
    "base64.encode(bytes(req.headers['x-a'][0].lower())) in ['b25l', 'dHdv']",
    [
      ['base64.encode(bytes(req.headers["x-a"][0].lower()))', 'b25l'],
      ['bytes(req.headers["x-a"][0].lower())', 'b25l'],
      ['req.headers["x-a"][0].lower()', 'one'],
      ['req.headers["x-a"][0]', 'One'],
    ],
  ],
  // A loop is one part, and the list or map that it runs over is another.
  [
    "req.headers['x-a'].exists(v, v.lower() == 'two') && has(req.headers.te)",
    [
      ['req.headers["x-a"].exists(v, v.lower() == "two")', true],
      ['req.headers["x-a"]', ['One', 'two']],
      ['has(req.headers.te)', false],
    ],
  ],
  // A part that fails has no value, and the other operand may still decide.
  [
    "req.headers['none'][0] == 'x' || req.method == 'GET'",
    [
      ['req.method == "GET"', true],
      ['req.method', 'GET'],
    ],
  ],
]

for (const [text, parts] of cases) {
  test(`the parts of ${text}`, () => {
    assert.deepEqual(partsOf(text), parts)
  })

  test(`${text} has the same value and price when its parts are noted`, () => {
    const [plain, noted] = [moment(), moment()]
    const parsed = parseHere(text)
    const value = evaluator.compile(text, site, new Set(), { parsed })(plain)
    assert.deepEqual(evaluator.compile(text, site, new Set(), { parsed, note: () => {} })(noted), value)
    assert.ok(plain.budget.left < MAX_PRICE)
    assert.equal(noted.budget.left, plain.budget.left)
  })
}
