import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { FetchFault } from '../../lib/http/outbound-fetch.ts'
import type { SlidingCounters } from '../../lib/limits/sliding-counters.ts'
import { request, response } from '../testing/test-request.ts'
import type { Verdict } from './engine/policy-traffic.ts'
import { ask, compile, type GivenRule, on } from './testing/test-policy.ts'

describe('rules that read', () => {
  const params = (count: number): string => Array.from({ length: count }, (_, i) => `p${i}=1`).join('&')
  const cookies = (count: number): string => Array.from({ length: count }, (_, i) => `c${i}=1`).join('; ')
  const refused = { refuse: 'HEAD_TOO_LARGE_TO_CHECK' }

  for (const [what, expression, few, many] of [
    ['a parameter', "hasQueryParam('admin')", { query: params(100) }, { query: `${params(100)}&admin=1` }],
    ['all parameters', "'admin' in req.url.query_params", { query: params(100) }, { query: `${params(100)}&admin=1` }],
    ['a query', "'a' in queryString.decode(req.url.query)", { query: params(100) }, { query: params(101) }],
    ['a cookie', "hasReqCookie('x')", { headers: { cookie: cookies(200) } }, { headers: { cookie: cookies(201) } }],
    [
      'all cookies',
      "'x' in req.cookies",
      { headers: { cookie: [cookies(100), cookies(100)] } },
      { headers: { cookie: [cookies(100), cookies(101)] } },
    ],
    [
      'a media type',
      "'x' in req.content_type.parameters",
      { headers: { 'content-type': `a/b${';c=d'.repeat(99)}` } },
      { headers: { 'content-type': `a/b${';c=d'.repeat(100)};x=1` } },
    ],
  ] as const) {
    test(`${what} refuse a request that has more than they can read, and no other`, async () => {
      const reads = compile({ inbound: [on(expression, 'deny')] })
      assert.equal(await ask(reads, request(few)), undefined)
      assert.deepEqual(await ask(reads, request(many)), refused)
      const filled = compile({ inbound: [on('true', 'add-headers', { headers: { a: `\${${expression}}` } })] })
      assert.deepEqual(await ask(filled, request(many)), refused)
      assert.equal(await ask(compile({ inbound: [on("req.method == 'PUT'", 'deny')] }), request(many)), undefined)
    })
  }

  test('cookies of an answer that sets more than they can read refuse the answer', async () => {
    const phases = compile({ outbound: [on("hasResCookie('x')", 'add-headers', { headers: { a: 'b' } })] })
    const setting = (count: number) => response({ headers: { 'set-cookie': Array<string>(count).fill('a=b') } })
    assert.equal(await phases.response?.(setting(200), request()), undefined)
    const code = { refuse: 'ANSWER_TOO_LARGE_TO_CHECK' }
    assert.deepEqual(await phases.response?.(setting(201), request()), code)
  })
})

describe('the meter of a request', () => {
  const spent = { refuse: 'POLICY_BUDGET_SPENT' }
  const failed = { refuse: 'POLICY_FAILED' }
  const slashes = (count: number) => request({ target: `/?${'/'.repeat(count)}`, query: '/'.repeat(count) })
  const many = (count: number, action: { type: string; config: Record<string, unknown> }): GivenRule[] =>
    Array.from({ length: count / 20 }, () => ({ actions: Array.from({ length: 20 }, () => action) }))

  for (const type of ['url-rewrite', 'redirect']) {
    test(`${type} stops writing at the length of a head`, async () => {
      const ctx = slashes(3000)
      const rewrite = (to: string, from = '/') => compile({ inbound: [on('true', type, { from, to })] })
      assert.deepEqual(await ask(rewrite('a'.repeat(4000)), ctx), failed)
      assert.deepEqual(await ask(rewrite('a'.repeat(4000)), slashes(38_000)), spent)
      // One match, whose replacement repeats a long group.
      assert.deepEqual(await ask(rewrite('$1'.repeat(2000), '(.*)'), ctx), spent)
      assert.equal(ctx.replacedTarget, undefined)
    })
  }

  test('each group that a replacement fills in costs, however short', async () => {
    const ctx = slashes(300)
    assert.deepEqual(
      await ask(compile({ inbound: [on('true', 'url-rewrite', { from: '(/)', to: '$1'.repeat(100) })] }), ctx),
      spent,
    )
    assert.equal(
      await ask(compile({ inbound: [on('true', 'url-rewrite', { from: '(/)', to: '$1'.repeat(10) })] }), ctx),
      undefined,
    )
  })

  test('a URL that a rule doubles again and again ends as an error', async () => {
    const ctx = request({ target: '/aaaaaaaa', path: '/aaaaaaaa' })
    const doubling = { type: 'url-rewrite', config: { from: 'a', to: 'aa' } }
    assert.ok([spent.refuse, failed.refuse].includes(refusal(await ask(compile({ inbound: many(80, doubling) }), ctx))))
    assert.ok((ctx.replacedTarget ?? '').length <= 64 * 1024)
  })

  test('variables that a rule doubles again and again spend it', async () => {
    for (const value of ['${vars.a + vars.a}', '${vars.a}${vars.a}']) {
      const doubling = { type: 'set-vars', config: { vars: [{ a: value }] } }
      const start = on('true', 'set-vars', { vars: [{ a: 'aaaaaaaa' }] })
      const answer = await ask(compile({ inbound: [start, ...many(60, doubling)] }), request())
      assert.ok([spent.refuse, failed.refuse].includes(refusal(answer)))
    }
  })

  test('texts without expressions are paid for too', async () => {
    const long = { type: 'add-headers', config: { headers: { a: 'a'.repeat(2000) } } }
    assert.equal(await ask(compile({ inbound: many(20, long) }), request()), undefined)
    assert.deepEqual(await ask(compile({ inbound: many(1000, long) }), request()), spent)
  })

  test('a header that would be longer than a head may be is an error of its rule', async () => {
    const headers = { 'x-long': `\${req.url.query}` }
    const long = request({ query: 'a'.repeat(70_000) })
    for (const type of ['add-headers', 'custom-response']) {
      assert.deepEqual(await ask(compile({ inbound: [on('true', type, { headers })] }), long), failed)
    }
  })

  test('each counter costs, so that no request touches hundreds of them', async () => {
    let taken = 0
    const take = () => {
      taken++
      return { isAllowed: true, waitMs: 0 }
    }
    const counters = { take } as unknown as SlidingCounters
    const limit = { type: 'rate-limit', config: { name: 'a', capacity: 10, rate: '60s', bucket_key: ['req.url'] } }
    assert.equal(await ask(compile({ inbound: many(40, limit) }, { tools: { counters } }), request()), undefined)
    assert.equal(taken, 40)
    assert.deepEqual(await ask(compile({ inbound: many(400, limit) }, { tools: { counters } }), request()), spent)
    assert.ok(taken < 240, String(taken))
  })

  test('a webhook is verified once for each provider and secret, and hashing has an end', async () => {
    const body = Buffer.alloc(10 * 1024 * 1024 - 1, 0x61)
    const headers = { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }
    let reads = 0
    const asked = (): ReturnType<typeof request> => ({
      ...request({ method: 'POST', headers }),
      readBody() {
        reads++
        return Promise.resolve(body)
      },
    })
    const check = (secret: string) => ({
      type: 'verify-webhook',
      config: { provider: 'github', secret, enforce: false },
    })
    assert.equal(await ask(compile({ inbound: many(80, check('one')) }), asked()), undefined)
    assert.equal(reads, 1)
    const others = Array.from({ length: 80 }, (_, i) => ({ actions: [check(`secret ${i}`)] }))
    assert.deepEqual(await ask(compile({ inbound: others }), asked()), spent)
    assert.ok(reads < 20, String(reads))
  })

  test('each form of a long URL that a webhook may sign costs', async () => {
    const headers = {
      'x-hubspot-signature-v3': `${'0'.repeat(43)}=`,
      'x-hubspot-request-timestamp': '0',
    }
    const check = (_: unknown, i: number) => ({
      type: 'verify-webhook',
      config: { provider: 'hubspot', secret: `secret ${i}`, enforce: false },
    })
    const phases = compile({ inbound: [{ actions: Array.from({ length: 10 }, check) }] })
    const asked = (length: number) =>
      request({ method: 'POST', headers, body: 'a', target: `/${'%3A'.repeat(length / 3)}` })
    assert.equal(await ask(phases, asked(300)), undefined)
    assert.deepEqual(await ask(phases, asked(38_000)), spent)
  })

  test('a token pays for each key that it is tried with', async () => {
    const key = () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).publicKey.export({ format: 'jwk' })
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `${part({ alg: 'ES512' })}.${part({ iss: 'a', exp: 4_000_000_000 })}.${'A'.repeat(176)}`
    const validation = {
      type: 'jwt-validation',
      config: {
        issuer: { allow_list: [{ value: 'a' }] },
        http: { tokens: [{ type: 'jwt', method: 'header', name: 'x-token' }] },
        jws: { allowed_algorithms: ['ES512'], keys: { sources: { additional_jkus: ['https://a.example/'] } } },
      },
    }
    const tried = async (count: number): Promise<Verdict | undefined> => {
      const body = Buffer.from(JSON.stringify({ keys: Array.from({ length: count }, key) }))
      const fetch = () => Promise.resolve({ status: 200, headers: new Headers(), body })
      return ask(
        compile({ inbound: [{ actions: [validation] }] }, { tools: { fetch } }),
        request({ headers: { 'x-token': token } }),
      )
    }
    assert.equal(refusal(await tried(1)), 'TOKEN_REQUIRED')
    assert.equal(refusal(await tried(2)), 'TOKEN_REQUIRED')
    assert.deepEqual(await tried(3), spent)
  })

  test('at most 8 actions call other servers', async () => {
    let calls = 0
    const fetch = () => {
      calls++
      return Promise.reject(new FetchFault('unreachable', 'nobody is there'))
    }
    const call = { type: 'http-request', config: { url: 'https://a.example/', on_error: 'continue' } }
    assert.equal(
      await ask(compile({ inbound: [{ actions: Array(8).fill(call) }] }, { tools: { fetch } }), request()),
      undefined,
    )
    assert.deepEqual(await ask(compile({ inbound: many(20, call) }, { tools: { fetch } }), request()), spent)
    assert.equal(calls, 16)
  })
})

function refusal(verdict: Verdict | undefined): string {
  return verdict && 'refuse' in verdict ? verdict.refuse : ''
}
