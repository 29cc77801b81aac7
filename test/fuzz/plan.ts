/** Plans of random calls to an operation; what depends on the state of the platform is filled in when one is sent. */
import fc from 'fast-check'
import type { Operation } from './document.ts'
import { existing, fitting, hostile } from './values.ts'

export interface Plan {
  readonly operation: Operation
  readonly method: string
  /** May contain placeholders for ids, like `body`. */
  readonly path: string
  readonly body: string | Buffer | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly as: 'admin' | 'member' | 'nobody' | 'stranger'
}

export function plans(operations: readonly Operation[]): fc.Arbitrary<Plan> {
  return fc.oneof(...operations.map((operation) => ({ weight: weight(operation), arbitrary: plan(operation) })))
}

/** Creations outnumber deletions, so that calls find something; modules are set more often than read. */
function weight({ method, path }: Operation): number {
  if (method === 'POST' && !path.includes('{id}')) return 20
  if (method === 'DELETE' && path.endsWith('{id}')) return 1
  return method === 'PATCH' || method === 'PUT' ? 4 : 2
}

function plan(operation: Operation): fc.Arbitrary<Plan> {
  return fc
    .record({
      method: mostly(11, fc.constant(operation.method), fc.constantFrom(...METHODS)),
      path: address(operation),
      body: body(operation),
      headers: mostly(8, fc.constant({}), junkHeaders),
      type: mostly(20, fc.constant('application/json'), fc.constantFrom(...TYPES)),
      version: mostly(40, fc.constant('2'), fc.constantFrom('', '0', '3', '2.0', '2, 2', '\u00e9')),
      as: fc.oneof(
        { weight: 40, arbitrary: fc.constant('admin' as const) },
        { weight: 6, arbitrary: fc.constant('member' as const) },
        { weight: 1, arbitrary: fc.constantFrom('nobody' as const, 'stranger' as const) },
      ),
    })
    .map(({ headers, type, version, ...rest }) => ({
      operation,
      ...rest,
      headers: { 'content-type': type, 'service-version': version, ...headers },
    }))
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'LOCK', 'QUERY', 'TRACE']
const TYPES = ['', 'text/plain', 'application/json; charset=latin1', 'APPLICATION/JSON', '*/*', 'a', ';', 'multipart/x']

const junkHeaders = fc
  .uniqueArray(
    fc.constantFrom<[string, string]>(
      ['host', 'a b'],
      ['host', 'evil.example.com:99999'],
      ['origin', 'null'],
      ['origin', '\u00ff'.repeat(500)],
      ['access-control-request-method', 'DELETE'],
      ['x-http-method-override', 'DELETE'],
      ['x-forwarded-host', 'evil.example.com'],
      ['forwarded', 'host=evil'],
      ['expect', 'junk'],
      ['expect', '100-continue'],
      ['range', 'bytes=0-1'],
      ['if-match', '"x"'],
      ['accept', 'text/html'],
      ['accept-encoding', 'br;q=1, *;q=0'],
      ['content-encoding', 'gzip'],
      ['cookie', 'a=b; '.repeat(300)],
      ['user-agent', 'x'.repeat(8000)],
      ['__proto__', 'x'],
      ['constructor', 'x'],
      ['connection', 'close'],
      ['upgrade', 'websocket'],
    ),
    { selector: ([name]) => name, minLength: 1, maxLength: 3 },
  )
  .map((pairs): Record<string, string> => Object.fromEntries(pairs))

/** The path of an operation with ids in it, and a query. */
function address(operation: Operation): fc.Arbitrary<string> {
  const ids = Object.entries(operation.prefixes).map(([name, prefix]) =>
    mostly(9, existing(prefix), strangeId(prefix)).map((id) => [name, id] as const),
  )
  return fc
    .record({ ids: fc.tuple(...ids), query: query(operation), bent: mostly(40, fc.constant(''), bends) })
    .map(({ ids, query, bent }) => {
      const path = ids.reduce((path, [name, id]) => path.replace(`{${name}}`, () => id), operation.path)
      return `${bent.startsWith('/') ? bent + path : path + bent}${query}`
    })
}

const bends = fc.constantFrom('/', '//', '/x', '%2f', '%', '/../api_keys', ';a=b', '/%00', '/__proto__', '%e2%82', '#x')

function strangeId(prefix: string): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constant(`${prefix}${'1'.repeat(27)}`),
    existing('ak_', 'ipp_', 'edghts_', 'edgtcp_', 'ca_', 'bot_'),
    fc.constantFrom(
      prefix,
      prefix.toUpperCase(),
      '-',
      '0',
      '..',
      '%2e%2e',
      '%00',
      '%20',
      "'",
      'constructor',
      '__proto__',
    ),
    fc.constantFrom('%C3%A9', '%F0%9F%98%80', `${prefix}${'1'.repeat(26)}`, `${prefix}${'1'.repeat(200)}`, '*', '{id}'),
    existing(prefix).map((id) => `${id}%0a`),
  )
}

function query({ listed }: Operation): fc.Arbitrary<string> {
  const good = listed
    ? fc.oneof(
        fc.constantFrom('', '?limit=1', '?limit=7', '?limit=100', '?limit=2&before_id=x'),
        existing(listed).map((id) => `?before_id=${id}&limit=3`),
      )
    : fc.constant('')
  const bad = fc.constantFrom(
    '?',
    '?x=1',
    '?limit=0',
    '?limit=1&limit=1',
    '?%',
    '?before_id=',
    '?a[b]=c',
    '?limit=1?x',
    '?&&',
  )
  return mostly(15, good, bad)
}

function body({ body }: Operation): fc.Arbitrary<string | Buffer | undefined> {
  const value = body ? fitting(body) : fc.constant({})
  const edited = fc
    .tuple(value, fc.array(edits, { minLength: 1, maxLength: 2 }))
    .map(([value, edits]) => edits.reduce(edit, value))
  const text = fc
    .oneof({ weight: 10, arbitrary: value }, { weight: 8, arbitrary: edited }, { weight: 1, arbitrary: hostile })
    .map((value) => JSON.stringify(value) ?? '')
  return fc.oneof(
    { weight: body ? 30 : 2, arbitrary: text },
    { weight: 2, arbitrary: fc.tuple(text, fc.nat(), breaks).map(([text, at, bend]) => bend(text, at)) },
    { weight: body ? 1 : 20, arbitrary: fc.constant(undefined) },
  )
}

/** Changes that make the body invalid JSON, or too much of it. */
const breaks = fc.constantFrom<(text: string, at: number) => string | Buffer>(
  (text, at) => text.slice(0, at % (text.length + 1)),
  (text, at) => Buffer.concat([Buffer.from(text.slice(0, at % 20)), Buffer.of(0xff, 0xc0), Buffer.from(text)]),
  (text) => `\ufeff${text}`,
  (text) => text.replace('{', '{"description":"","description":"",'),
  (text) => text.replace('{', '{"__proto__":{},'),
  (text) => text.replace(/"[a-z]*":/, '"a\\u0000":'),
  (text) => text.replace(/"[^"]*"\}/, '"\\ud800"}'),
  (text) => text.replace(/"[^"]*"\}/, '1e999}'),
  (text) => text + text,
  () => '['.repeat(50_000),
  () => `"${'\\"'.repeat(100_000)}`,
  (text) => `${' '.repeat(1024 * 1024 - text.length)}${text}`,
  (text) => `${' '.repeat(1024 * 1024)}${text}`,
)

interface Edit {
  readonly at: number
  readonly kind: 'replace' | 'remove' | 'add' | 'wrap'
  readonly key: string
  readonly value: unknown
}

const edits: fc.Arbitrary<Edit> = fc.record({
  at: fc.nat(),
  kind: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'wrap'),
  key: fc.constantFrom('constructor', 'toString', 'id', 'descripton', 'é', '', 'x'.repeat(3000), 'enabled'),
  value: hostile,
})

/** A copy of `value` with one place in it changed. */
function edit(value: unknown, { at, kind, key, value: other }: Edit): unknown {
  if (typeof value !== 'object' || value === null) return other
  const copy = structuredClone(value) as Record<string, unknown>
  const places = slots(copy)
  const place = places[at % (places.length + 1)]
  if (!place || kind === 'add') {
    if (!Array.isArray(copy)) copy[key] = other
    return copy
  }
  const [holder, name] = place
  if (kind === 'remove') delete holder[name]
  else holder[name] = kind === 'wrap' ? [holder[name]] : other
  return copy
}

function slots(value: Record<string, unknown>): [holder: Record<string, unknown>, name: string][] {
  return Object.entries(value).flatMap(([name, each]): [Record<string, unknown>, string][] =>
    typeof each === 'object' && each !== null
      ? [[value, name], ...slots(each as Record<string, unknown>)]
      : [[value, name]],
  )
}

function mostly<A, B>(weight: number, usual: fc.Arbitrary<A>, strange: fc.Arbitrary<B>): fc.Arbitrary<A | B> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: strange })
}
