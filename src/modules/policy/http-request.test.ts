// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Fetch, type FetchAnswer, FetchFault, type FetchRequest } from '../../lib/http/outbound-fetch.ts'
import { request, response } from '../testing/test-request.ts'
import type { Verdict } from './engine/policy-traffic.ts'
import { ask, compile, type GivenRule, on } from './testing/test-policy.ts'

type Reply = Partial<FetchAnswer> | FetchFault

const replied = ({ status = 200, headers = new Headers(), body = Buffer.from('') }: Partial<FetchAnswer>) => ({
  status,
  headers,
  body,
  address: '203.0.113.9',
})
const timedOut = new FetchFault('timed_out', 'api.example.com did not answer in time')

/** A policy that calls a service with these answers; the last repeats. */
function setUp(config: Record<string, unknown>, replies: readonly Reply[] = [{}], rest: GivenRule[] = []) {
  const sent: (FetchRequest & { readonly url: string })[] = []
  let clock = 1000
  const fetch: Fetch = (url, about = {}) => {
    sent.push({ url: String(url), ...about })
    clock += 100
    const reply = replies[Math.min(sent.length, replies.length) - 1] ?? {}
    return reply instanceof FetchFault ? Promise.reject(reply) : Promise.resolve(replied(reply))
  }
  const phases = compile(
    {
      inbound: [
        { actions: [{ type: 'http-request', config: { url: 'https://api.example.com/a', ...config } }] },
        ...rest,
      ],
    },
    { tools: { fetch, now: () => clock } },
  )
  return { sent, phases }
}

/** A rule that answers with the value of an expression. */
const show = (text: string): GivenRule => ({ actions: [{ type: 'custom-response', config: { body: text } }] })
const shown = (verdict: Verdict | undefined): unknown =>
  verdict && 'respond' in verdict ? verdict.respond.body : verdict

describe('http-request', () => {
  test('sends what its settings say, with expressions filled in', async () => {
    const { phases, sent } = setUp({
      url: 'https://api.example.com/${req.method}?x=1',
      method: 'POST',
      query_params: [
        { key: 'who', value: '${conn.client_ip}&admin=1' },
        { key: 'z', value: '' },
      ],
      headers: { 'X-Token': 'Bearer ${req.host}\r\nx: y'.replace('\r\n', ' ') },
      body: '{"path": "${req.url.path}"}',
      timeout: '10s',
    })
    assert.equal(await ask(phases, request()), undefined)
    assert.deepEqual(sent, [
      {
        url: 'https://api.example.com/GET?x=1&who=192.0.2.7%26admin%3D1&z=',
        method: 'POST',
        headers: {
          'x-token': 'Bearer app.example.com x: y',
          'x-forwarded-for': '192.0.2.7',
          'cdn-loop': 'postern',
        },
        body: '{"path": "/"}',
        followsRedirects: false,
        maxRedirects: 3,
        maxBytes: 256 * 1024,
        timeoutMs: 10_000,
      },
    ])
  })

  test('follows redirects only where that repeats no side effect', async () => {
    const follows = async (config: Record<string, unknown>): Promise<unknown> => {
      const { phases, sent } = setUp(config)
      await ask(phases, request())
      return sent[0]?.followsRedirects
    }
    assert.equal(await follows({}), true)
    assert.equal(await follows({ method: 'OPTIONS', max_redirects: 1 }), true)
    assert.equal(await follows({ max_redirects: 0 }), false)
    assert.equal(await follows({ method: 'DELETE' }), false)
    assert.equal(await follows({ method: 'POST', body: 'x' }), false)
  })

  test('a visitor cannot add header lines to the request', async () => {
    const { phases, sent } = setUp({ headers: { a: "${req.headers['x-a'][0]}" } })
    await ask(phases, request({ headers: { 'x-a': 'b\r\nc: d' } }))
    assert.equal(sent[0]?.headers?.a, 'bc: d')
  })

  test('retries as long as its condition says so, three times at most', async () => {
    const tries = async (retry_condition: string, replies: readonly Reply[]): Promise<number> => {
      const { phases, sent } = setUp({ retry_condition }, replies)
      await ask(phases, request())
      return sent.length
    }
    assert.equal(await tries('true', [{}]), 4)
    assert.equal(await tries('attempts < 2', [{}]), 2)
    assert.equal(await tries('last_attempt.res.status_code >= 500', [{ status: 503 }, { status: 500 }, {}]), 3)
    assert.equal(await tries('last_attempt.res.statusCode == 500', [{ status: 500 }, {}]), 2)
    assert.equal(await tries("last_attempt.error != ''", [timedOut, {}]), 2)
    assert.equal(await tries("last_attempt.error.contains('in time') && !has(last_attempt.res)", [timedOut, {}]), 2)
    assert.equal(
      await tries('last_attempt.res.status_code >= 500', [timedOut, {}]),
      1,
      'a condition that fails causes no retry',
    )
    assert.equal(await tries("last_attempt.req.method == 'PUT'", [{}]), 1)
  })

  test('takes no longer than its timeout', async () => {
    const sent: number[] = []
    let clock = 0
    const fetch: Fetch = (_, { timeoutMs = 0 } = {}) => {
      sent.push(timeoutMs)
      clock += 600
      return Promise.reject(timedOut)
    }
    const phases = compile(
      { inbound: [on('true', 'http-request', { url: 'https://a.example', timeout: '1s', retry_condition: 'true' })] },
      { tools: { fetch, now: () => clock } },
    )
    await ask(phases, request())
    assert.deepEqual(sent, [1000, 400])
  })
})

describe('rules after http-request', () => {
  test('read the answer', async () => {
    const headers = new Headers([
      ['X-A', '1'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ])
    const body = Buffer.from('{"user": "ada"}')
    const at = 'actions.ngrok.http_request'
    const { phases } = setUp(
      { retry_condition: 'attempts < 2' },
      [{ status: 503 }, { headers, body }],
      [
        show(
          `\${${at}.res.status_code} \${${at}.res.header['x-a'][0]} \${json.decode(${at}.res.body).user} ` +
            `\${${at}.res.header['set-cookie']} \${${at}.res.resolved_ip} \${${at}.res.time_ms} ` +
            `\${${at}.attempts.map(a, a.response_status_code)} \${${at}.req.method} \${${at}.req.url} \${has(${at}.error)}`,
        ),
      ],
    )
    assert.equal(
      shown(await ask(phases, request())),
      '200 1 ada ["a=1","b=2"] 203.0.113.9 100 [503,200] GET https://api.example.com/a false',
    )
  })

  test('read why there was no answer', async () => {
    const at = 'actions.ngrok.http_request'
    const { phases } = setUp({}, [timedOut], [show(`\${${at}.error.code}: \${${at}.error.message} \${has(${at}.res)}`)])
    assert.equal(shown(await ask(phases, request())), 'timed_out: api.example.com did not answer in time false')
  })

  test('that judge by the answer let nothing pass when there is none', async () => {
    const judge = on('actions.ngrok.http_request.res.status_code != 204', 'deny')
    const verdict = async (reply: Reply) => ask(setUp({}, [reply], [judge]).phases, request())
    assert.equal(await verdict({ status: 204 }), undefined)
    assert.deepEqual(await verdict({ status: 200 }), { respond: { status: 403, headers: [], body: '' } })
    assert.deepEqual(await verdict(timedOut), { refuse: 'POLICY_FAILED' })
  })

  test('run in the phase of the response too', async () => {
    const fetch: Fetch = () => Promise.resolve(replied({ body: Buffer.from('said') }))
    const phases = compile(
      {
        outbound: [
          on('res.status_code == 200', 'http-request', { url: 'https://a.example/${res.status_code}' }),
          on('true', 'add-headers', { headers: { 'x-said': '${actions.ngrok.http_request.res.body}' } }),
        ],
      },
      { tools: { fetch } },
    )
    const came = response()
    assert.equal(await phases.response?.(came, request()), undefined)
    assert.equal(came.headers.get('x-said'), 'said')
  })
})

describe('an http-request that gets no answer', () => {
  test('continues or halts, as `on_error` says', async () => {
    assert.equal(await ask(setUp({}, [timedOut]).phases, request()), undefined)
    assert.deepEqual(await ask(setUp({ on_error: 'halt' }, [timedOut]).phases, request()), {
      refuse: 'POLICY_REQUEST_FAILED',
    })
    assert.equal(await ask(setUp({ on_error: 'halt' }, [{ status: 500 }]).phases, request()), undefined)
  })

  test('because of a loop is refused, whatever `on_error` says', async () => {
    const verdict = async (loop: string | string[]) => {
      const { phases, sent } = setUp({})
      return [await ask(phases, request({ headers: { 'cdn-loop': loop } })), sent[0]?.headers?.['cdn-loop']]
    }
    assert.deepEqual(await verdict('other; x=1, Postern'), [undefined, 'other; x=1, Postern, postern'])
    assert.deepEqual(await verdict('postern, postern; a=b, postern'), [{ refuse: 'POLICY_REQUEST_LOOP' }, undefined])
    assert.deepEqual(await verdict(['postern', 'postern', 'postern']), [{ refuse: 'POLICY_REQUEST_LOOP' }, undefined])
  })

  test('because too many are under way is refused', async () => {
    const open: ((answer: FetchAnswer) => void)[] = []
    const fetch: Fetch = () => new Promise((resolve) => open.push(resolve))
    const phases = compile(
      { inbound: [on('true', 'http-request', { url: 'https://a.example' })] },
      { tools: { fetch } },
    )
    const waiting = Array.from({ length: 100 }, () => ask(phases, request()))
    assert.deepEqual(await ask(phases, request()), { refuse: 'SERVER_BUSY', headers: [['Retry-After', '5']] })
    for (const answer of open) answer(replied({}))
    assert.deepEqual(await Promise.all(waiting), Array(100).fill(undefined))
    const later = ask(phases, request())
    open.at(-1)?.(replied({}))
    assert.equal(await later, undefined)
  })
})

describe('http-request is refused when it is written', () => {
  const broken: readonly [Record<string, unknown>, RegExp][] = [
    [{ url: 'nowhere' }, /config\.url` must be an https URL/],
    [{ url: 'http://example.com' }, /config\.url` must be an https URL/],
    [{ url: 'https://user:secret@example.com' }, /without a password/],
    [{ url: 'https://a.example/${nope}' }, /config\.url` names an unknown variable/],
    [{ method: 'TRACE' }, /must be one of `GET`/],
    [{ body: 'x' }, /config\.body` cannot go with `GET`/],
    [{ timeout: '31s' }, /between `1s` and `30s`/],
    [{ max_redirects: 4 }, /between 0 and 3/],
    [{ headers: { Host: 'a' } }, /\["Host"\]` is a header that the server writes itself/],
    [{ headers: { 'content-length': '1' } }, /belongs to the connection/],
    [{ retry_condition: 'attempts' }, /must be true or false/],
    [{ retry_condition: 'last_attempt.nope' }, /unknown field/],
    [{ headers: { a: '${attempts}' } }, /unknown variable, `attempts`/],
    [{ on_error: 'ignore' }, /must be one of `continue`, `halt`/],
    [{ query_params: Array.from({ length: 33 }, () => ({ key: 'a', value: 'b' })) }, /has 33 entries/],
    [{ query_params: [{ key: 'a' }] }, /value` is required/],
  ]
  for (const [config, reason] of broken) {
    test(JSON.stringify(config).slice(0, 60), () => {
      assert.throws(
        () => setUp(config),
        (error) => error instanceof Error && reason.test(error.message),
      )
    })
  }
})
