import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { Budget, BudgetSpent, MAX_PRICE } from './budget.ts'
import { BadExpression } from './cel.ts'
import { Evaluator } from './evaluator.ts'
import { checkExpression } from './expression.ts'
import { Moment } from './moment.ts'
import { parseHere } from './parsed.ts'
import { ownLists, type Site } from './policy-phases.ts'
import type { Shape } from './policy-shape.ts'
import { variableValues } from './variable-values.ts'
import { variables } from './variables.ts'

const site: Site = { place: 'route', phase: 'request', lists: ownLists }
const evaluator = new Evaluator()

/** A request of the largest size. */
function moment(): Moment {
  const peer = { ip: '192.0.2.1', port: 1, serverIp: '192.0.2.2', serverPort: 443, startedAt: 0 }
  const headers = HeaderList.of(Array.from({ length: 80 }, (_, i) => [`x-${i}`, 'ab'.repeat(100)] as const))
  headers.add('x-long', 'a'.repeat(8000))
  const target = `/${'a'.repeat(4000)}?${'q=1&'.repeat(500)}`
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
    target,
    path: target.split('?')[0] ?? '',
    query: target.split('?')[1] ?? '',
    headers,
    found: new Map<string, string>(),
    bodyLength: 'none' as const,
    replacedHost: undefined,
    replacedTarget: undefined,
    readBody: () => Promise.reject(new Error('not here')),
  }
  return new Moment({ connection: { peer, edgeId: 'e', serverName: '', tls: undefined }, request, now: 0, region: '' })
}

/** How an expression ends: refused at once, out of budget, with an error, or with a value. */
function outcome(text: string): 'refused' | 'spent' | 'failed' | 'done' {
  try {
    checkExpression(text, site, { condition: false })
  } catch (error) {
    assert.ok(error instanceof BadExpression, String(error))
    return 'refused'
  }
  const now = moment()
  try {
    evaluator.compile(text, site, new Set(), { parsed: parseHere(text) })(now)
    return 'done'
  } catch (error) {
    if (error instanceof BudgetSpent) return 'spent'
    return 'failed'
  }
}

const long = "req.headers['x-long'][0]"

const hostile: Readonly<Record<string, string>> = {
  'loops in loops': 'lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))',
  'loops over a literal': `[${'1,'.repeat(300)}1].map(a, [${'1,'.repeat(300)}1].map(b, a + b))`,
  'an error that is swallowed':
    'lists.range(9999).all(a, lists.range(9999).all(b, false)) || lists.range(9999).all(a, lists.range(9999).all(b, b >= 0)) || true',
  'text that doubles': `lists.range(40).map(i, ${long}).join('').replace('a', 'aaaaaaaaaaaaaaaa').replace('a', 'aaaaaaaaaaaaaaaa')`,
  'text in text': `lists.range(9000).exists(i, ${long}.contains('${'a'.repeat(500)}b'))`,
  'patterns over long text': `lists.range(2000).all(i, !${long}.matches('(a|b|ab)*c'))`,
  'a pattern that is large': `${long}.matches('[ab]*a[ab]{300}c')`,
  'a pattern that comes with the request': `lists.range(500).all(i, !'a'.matches(string(i) + ${long}.substring(0, 20) + '{1,50}'))`,
  'lists that grow': 'lists.range(9999).filter(x, true).filter(x, true).map(x, [x, x, x])',
  'lists compared': 'lists.range(5000).all(i, lists.range(5000) == lists.range(5000))',
  'sorted lists': 'lists.range(3000).exists(i, lists.range(3000).reverse().sort() == [])',
  'members of lists': 'lists.range(9999).all(i, i in lists.range(9999))',
  'hashes of long text': `lists.range(9999).all(i, hash.sha512(${long}) != '')`,
  'documents read repeatedly': `lists.range(9999).all(i, json.decode('[' + '${'[],'.repeat(300)}[]]') != [])`,
  'all headers of all headers': 'req.headers.all(a, req.headers.all(b, req.headers.all(c, a.size() > 0 || b != c)))',
  'cookies read repeatedly': "lists.range(9999).all(i, !hasReqCookie('a'))",
  'a query read repeatedly': "lists.range(9999).all(i, hasQueryParam('q'))",
  'networks read repeatedly': "lists.range(9999).all(i, inCidrRange('10.0.0.1', '10.0.0.0/8'))",
  'numbers that grow': 'lists.range(9999).all(i, 9223372036854775807 * 1 > i - 1)',
  'texts formatted': `lists.range(9999).all(i, '%s %s'.format([${long}, ${long}]) != '')`,
  'texts split': `lists.range(9999).all(i, ${long}.split('').size() > 0)`,
  'texts joined': `lists.range(9999).all(i, ${long}.split('').join('-') != '')`,
}

describe('a hostile expression is stopped', () => {
  for (const [what, text] of Object.entries(hostile)) {
    test(what, () => assert.notEqual(outcome(text), 'done'))
  }
})

test('an expression within the budget is evaluated', () => {
  assert.equal(outcome(`${long}.startsWith('a') && req.headers.exists(name, name == 'x-7')`), 'done')
  assert.equal(outcome(`${long}.matches('^a+$')`), 'done')
  assert.equal(outcome('lists.range(50).map(x, x * 2).filter(x, x > 10).size() > 0'), 'done')
})

test('a spent budget stays spent', () => {
  const budget = new Budget()
  budget.charge(MAX_PRICE)
  assert.throws(() => budget.charge(1), BudgetSpent)
  assert.throws(() => budget.charge(0), BudgetSpent)
  assert.ok(budget.isSpent)
})

test('a budget counts steps and never asks a clock', () => {
  const budget = new Budget()
  budget.charge(MAX_PRICE / 2)
  budget.charge(MAX_PRICE / 2)
  assert.deepEqual([budget.left, budget.isSpent, budget.tell()], [0, false, false])
  assert.throws(() => budget.charge(1), BudgetSpent)
  assert.deepEqual([budget.left, budget.tell(), budget.tell()], [0, true, false])
})

test('every variable that an expression may name has a value or is known to be absent', () => {
  const missing: string[] = []
  const walk = (path: string, shape: Shape): void => {
    if (shape.kind === 'absent' || path === 'actions') return
    if (shape.kind !== 'record' && !Object.hasOwn(variableValues, path)) missing.push(path)
    for (const [name, each] of Object.entries(shape.fields ?? {})) walk(`${path}.${name}`, each)
  }
  for (const each of [
    site,
    { ...site, phase: 'response' as const },
    { ...site, place: 'tls' as const, phase: 'connect' as const },
  ]) {
    for (const [name, shape] of Object.entries(variables(each))) walk(name, shape)
  }
  assert.deepEqual(missing, [])
})

test('each of 1,000 generated expressions is refused or ends', () => {
  const random = mulberry(7)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const leaves = ['1', "'a'", 'true', long, 'req.headers', 'req.url', 'conn.client_ip', 'lists.range(500)', '[1,2,3]']
  const make = (depth: number): string => {
    if (depth === 0) return pick(leaves)
    const inner = (): string => make(depth - 1)
    return pick([
      () => `lists.range(400).all(v${depth}, ${inner()} == ${inner()})`,
      () => `lists.range(400).map(v${depth}, ${inner()})`,
      () => `[${inner()}, ${inner()}]`,
      () => `(${inner()} + ${inner()})`,
      () => `(${inner()} || ${inner()})`,
      () => `string(${inner()}).replace('a', ${inner()})`,
      () => `string(${inner()}).matches(string(${inner()}))`,
      () => `json.encode(${inner()})`,
      () => `size(${inner()})`,
      () => `(${inner()} == ${inner()} ? ${inner()} : ${inner()})`,
      () => `hash.sha256(string(${inner()}))`,
      () => `string(${inner()}).split('')`,
    ])()
  }
  const seen = new Set<string>()
  for (let i = 0; i < 1000; i++) seen.add(outcome(make(1 + (i % 5))))
  assert.ok(seen.has('spent') && seen.has('done'), [...seen].join())
})

function mulberry(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
