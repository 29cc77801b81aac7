/** Compares the prices of expressions with the time they take once warm: a ratio above 1 means that the price is too low. */
import { HeaderList } from '../../src/lib/http/header-list.ts'
import { MAX_PRICE } from '../../src/modules/policy/engine/budget.ts'
import { Evaluator } from '../../src/modules/policy/engine/evaluator.ts'
import { Moment } from '../../src/modules/policy/engine/moment.ts'
import { parseHere } from '../../src/modules/policy/engine/parsed.ts'
import { ownLists } from '../../src/modules/policy/engine/policy-phases.ts'
import { grouped, table } from '../table.ts'

const long = "req.headers['x-long'][0]"

/** An expression for each operation with its own price, on as much data as a request may have. */
const expressions: readonly string[] = [
  'true',
  "req.method == 'GET'",
  "'x-70' in req.headers",
  'req.headers == req.headers',
  'req == req',
  "hasReqCookie('a')",
  "hasQueryParam('zz')",
  'req.user_agent.is_bot',
  "inCidrRange(conn.client_ip, '10.0.0.0/8')",
  'lists.range(5000).size() > 0',
  'lists.range(500).all(i, i >= 0)',
  'lists.range(300).map(i, [i]).flatten().size() > 0',
  'lists.range(1000) == lists.range(1000)',
  '9999 in lists.range(2000)',
  'lists.range(900).reverse().sort().size() > 0',
  'lists.range(500).distinct().size() > 0',
  `${long} == ${long} + 'a'`,
  `${long}.contains(${long}.substring(0, 300) + 'b')`,
  `${long}.lastIndexOf(${long}.substring(0, 100) + 'b') == 1`,
  `${long}.size() > 0`,
  `${long}.substring(0, 3000).replace('a', 'bb') == ''`,
  `${long}.split('a').join('b') == ''`,
  `'%.3f %.3f'.format([1.5, 1.5]) == ''`,
  `'%x'.format([${long}]) == ''`,
  `hash.sha256(${long}) == ''`,
  `base64.decode(${long}) == ''`,
  `json.decode('[${'{"a":1},'.repeat(300)}1]') != 1`,
  "json.encode(lists.range(1000)) == ''",
  "json.encode(req.headers) == ''",
  'lists.range(50).all(i, json.decode("{") == 1 || true)',
  `url.escape(${long}.substring(0, 2000).replace('a', 'é')) == ''`,
  `isURL('http://' + ${long} + '.é.com/?a=b c')`,
  "timestamp(time.now).getHours('America/New_York') == 3",
  "timestamp(time.now) + duration('1h') > timestamp(time.now)",
  'lists.range(100).all(i, uint(i) + 1u > 0u)',
  "req.url.path.matches('^/a+$')",
  "req.url.path.matches('(a|b|ab)*c')",
  `${long}.matches('[ab]*a[ab]{20}c')`,
  `'a'.matches(string(rand.int(1, 1000000000)) + '(a|b){1,20}')`,
]

/** How long each expression runs, in microseconds of CPU time: once to warm up, then once to be measured. */
const RUN_MICROS = 80_000

export function pricesTable(): string {
  const evaluator = new Evaluator()
  const rows = expressions.map((text) => {
    const run = evaluator.compile(text, { place: 'route', phase: 'request', lists: ownLists }, new Set(), {
      parsed: parseHere(text),
    })
    measured(run)
    const { took, charged } = measured(run)
    return { text, took, charged, ratio: took / charged }
  })
  const head = ['expression', 'takes, ns', 'is charged, ns', 'ratio']
  const lines = rows
    .toSorted((a, b) => b.ratio - a.ratio)
    .map(({ text, took, charged, ratio }) => [
      text.length > 70 ? `${text.slice(0, 67)}…` : text,
      grouped(took),
      grouped(charged),
      ratio.toFixed(2),
    ])
  return `prices: of expressions\n\n${table([head, ...lines])}\n`
}

function measured(run: (moment: Moment) => unknown): { took: number; charged: number } {
  const since = process.threadCpuUsage()
  let charged = 0
  for (let times = 1; ; times++) {
    const moment = momentNow()
    try {
      run(moment)
    } catch {
      // It exceeded its budget or failed, which has a price too.
    }
    charged = moment.budget.isSpent ? MAX_PRICE : MAX_PRICE - moment.budget.left
    const { user, system } = process.threadCpuUsage(since)
    if (user + system > RUN_MICROS) return { took: ((user + system) * 1000) / times, charged }
  }
}

const peer = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 443, startedAt: 0 }
const headers = HeaderList.of([
  ...Array.from({ length: 80 }, (_, i) => [`x-${i}`, 'ab'.repeat(100)] as const),
  ['x-long', 'a'.repeat(8000)],
  ['cookie', 'a=1; b=2'],
  ['user-agent', 'curl/8'],
])
const path = `/${'a'.repeat(4000)}`
const query = 'q=1&'.repeat(500)
const request = {
  peer,
  tls: undefined,
  edgeId: 'e',
  routeId: 'r',
  startedAt: 0,
  scheme: 'https' as const,
  version: '1.1' as const,
  method: 'GET',
  host: 'a.example',
  authority: 'a.example',
  target: `${path}?${query}`,
  path,
  query,
  headers,
  bodyLength: 'none' as const,
  found: new Map<string, string>(),
  replacedHost: undefined,
  replacedTarget: undefined,
  readBody: () => Promise.reject(new Error('not here')),
}
const connection = { peer, edgeId: 'e', serverName: '', tls: undefined }

function momentNow(): Moment {
  return new Moment({ connection, request, now: 0, region: '' })
}
