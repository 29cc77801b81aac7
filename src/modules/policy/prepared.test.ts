// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
/** Expressions of a policy are all parsed on another thread before its rules are compiled, wherever they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTools } from '../testing/test-tools.ts'
import type { SourceKind } from './engine/action.ts'
import { actions } from './engine/actions.ts'
import { expressionsIn } from './engine/expressions-in.ts'
import { parseHere } from './engine/parsed.ts'
import { compile, type GivenRule } from './testing/test-policy.ts'
import { trafficSteps } from './traffic.ts'

/** A different expression for each call, in the form for a setting of this kind. */
function texts(): { readonly given: string[]; readonly of: (kind: SourceKind) => string } {
  const given: string[] = []
  const of = (kind: SourceKind): string => {
    const name = `x${given.length}`
    const isTruth = kind === 'retry' || kind === 'value'
    const text = kind === 'retry' ? `last_attempt.res.body == '${name}'` : `req.host == '${name}'`
    given.push(text)
    return isTruth ? text : `\${${text}}`
  }
  return { given, of }
}

/** The settings of each action that may hold expressions, with one in each place. */
const settings: Readonly<Record<string, (of: (kind: SourceKind) => string) => Record<string, unknown>>> = {
  'add-headers': (of) => ({ headers: { 'x-a': of('template'), 'x-b': of('template') } }),
  'custom-response': (of) => ({ body: of('template'), headers: { 'x-a': of('template') } }),
  'http-request': (of) => ({
    url: `https://a.example/${of('template')}`,
    query_params: [{ key: of('template'), value: of('template') }],
    headers: { 'x-a': of('template') },
    method: 'POST',
    body: of('template'),
    retry_condition: of('retry'),
  }),
  log: (of) => ({ metadata: { a: of('template'), b: { c: [of('template')] } } }),
  'rate-limit': (of) => ({ name: 'a', capacity: 10, rate: '60s', bucket_key: [of('value')] }),
  redirect: (of) => ({ from: of('pattern'), to: of('template'), headers: { 'x-a': of('template') } }),
  'set-vars': (of) => ({ vars: [{ a: of('template') }, { b: [of('template')] }] }),
  'url-rewrite': (of) => ({ from: of('pattern'), to: of('template') }),
}

test('all actions with expressions are in this test', () => {
  const names = Object.entries(actions).flatMap(([name, { sources }]) => (sources ? [name] : []))
  assert.deepEqual(Object.keys(settings), names)
})

for (const [type, config] of Object.entries(settings)) {
  test(`${type}: all that is compiled was listed for parsing`, () => {
    const { given, of } = texts()
    const condition = "req.method == 'GET'"
    const rule: GivenRule = { name: '', expressions: [condition], actions: [{ type, config: config(of) }] }
    const parsed = new Set<string>()
    const expression = (text: string) => {
      parsed.add(text)
      return parseHere(text)
    }
    compile({ inbound: [rule] }, { tools: { expression } })
    assert.deepEqual([...parsed].sort(), [condition, ...given].sort())
    const lists = { inbound: [{ name: '', expressions: [], ...rule }], outbound: [] }
    const listed = expressionsIn(lists)
    assert.deepEqual(listed.toSorted(), [...parsed].sort())
  })
}

test('the same text compiles as a condition and as a retry condition', () => {
  const text = "req.method == 'GET'"
  const retried = { url: 'https://a.example', retry_condition: text }
  compile({ inbound: [{ expressions: [text], actions: [{ type: 'http-request', config: retried }] }] })
})

test('compiling pauses after each expression and each action', () => {
  const { given, of } = texts()
  const rewrites = Array.from({ length: 20 }, () => ({
    type: 'url-rewrite',
    config: { from: 'a', to: of('template') },
  }))
  const rule = { name: '', expressions: [], actions: rewrites }
  const own = { place: 'route', inbound: [rule], outbound: [], ipPolicies: {}, readsHandshake: false } as const
  const steps = [...trafficSteps(own, testTools())]
  assert.equal(steps.length, given.length + rewrites.length)
})
