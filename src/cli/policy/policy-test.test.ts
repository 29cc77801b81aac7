import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { run } from '../program.ts'
import { testTerminal } from '../testing/test-terminal.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-policy-'))
after(() => rmSync(folder, { recursive: true }))

async function policyTest(file: unknown, ...flags: string[]) {
  const text = typeof file === 'string' ? file : JSON.stringify(file)
  const terminal = testTerminal({ cwd: folder, input: text })
  const code = await run(['policy', 'test', '-', ...flags], terminal)
  return { code, ...terminal.printed }
}

const policy = {
  on_http_request: [
    {
      name: 'read only',
      expressions: ["req.method != 'GET'"],
      actions: [{ type: 'deny', config: { status_code: 405 } }],
    },
    { name: 'tagged', actions: [{ type: 'add-headers', config: { headers: { 'x-tag': '${req.host}' } } }] },
  ],
  on_http_response: [{ name: 'marked', actions: [{ type: 'add-headers', config: { headers: { 'x-mark': 'a' } } }] }],
}

test('exit code 0 if everything is as expected', async () => {
  const cases = [
    {
      name: 'writes',
      request: { method: 'PUT' },
      expect: { verdict: 'answers', status_code: 405, matched: ['read only'], headers: { 'X-Mark': null } },
    },
    {
      name: 'reads',
      request: { url: 'https://shop.test/a?b', headers: { 'x-two': ['1', '2'] } },
      response: { status_code: 404, body: 'none', headers: { 'x-mark': 'b' } },
      expect: {
        verdict: 'passes',
        status_code: 404,
        body: 'none',
        headers: { 'x-mark': ['b', 'a'] },
        matched: ['tagged', 'marked'],
        upstream: { method: 'GET', url: '/a?b', headers: { 'x-tag': 'shop.test', 'x-two': ['1', '2'], 'x-no': null } },
      },
    },
  ]
  assert.deepEqual(await policyTest({ policy, cases }), {
    code: 0,
    err: '',
    out: 'ok    writes\nok    reads\n2 cases, 0 failed\n',
  })
})

test('exit code 1 if something differs, which is printed with what each rule did', async () => {
  const expect = {
    verdict: 'passes',
    status_code: 200,
    error_code: 'ERR_X',
    headers: { 'x-mark': 'a' },
    matched: [],
    upstream: { url: '/' },
    body: 'x',
  }
  const { code, out, err } = await policyTest({ policy, cases: [{ request: { method: 'PUT' }, expect }] })
  assert.equal(code, 1)
  assert.equal(err, 'error: 1 of 1 case differs from what is expected\n')
  assert.equal(
    out,
    `FAIL  cases[0]
      verdict: expected "passes", got "answers"
      status_code: expected 200, got 405
      error_code: expected "ERR_X", got nothing
      headers.x-mark: expected "a", got nothing
      body: expected "x", got ""
      matched: expected nothing, got "read only"
      upstream: expected {"url":"/"}, got nothing
      policy answers 405.
        policy request: answers 405
          rule "read only" applies
            req.method != 'GET': true
              req.method: "PUT"
            deny answers 405
          rule "tagged" is not reached
        policy response: passes
1 case, 1 failed
`,
  )
})

test('--json has every case with its differences and its explanation', async () => {
  const cases = [
    { name: 'a', request: {}, expect: { verdict: 'passes' } },
    { name: 'b', request: {}, expect: { verdict: 'closes' } },
  ]
  const { code, out } = await policyTest({ policy, cases }, '--json')
  const reported = JSON.parse(out)
  assert.equal(code, 1)
  assert.equal(reported.failed, 1)
  assert.deepEqual(
    reported.cases.map(({ name, passed, differences }: Record<string, unknown>) => [name, passed, differences]),
    [
      ['a', true, []],
      ['b', false, [{ field: 'verdict', expected: 'closes', actual: 'passes' }]],
    ],
  )
  assert.equal(reported.cases[0].explanation.steps[0].module, 'policy')
})

test('the policy of a case wins over that of the file; a text, the older names and connections are accepted too', async () => {
  const deny = { actions: [{ type: 'deny' }] }
  const cases = [
    { request: {}, expect: { status_code: 403 }, policy: { inbound: [deny] } },
    { request: {}, expect: { status_code: 403 }, policy: 'on_http_request:\n  - actions:\n      - type: deny\n' },
    { connection: { client_ip: '10.0.0.1' }, expect: { verdict: 'closes' }, policy: { on_tcp_connect: [deny] } },
    { request: {}, expect: { status_code: 200 } },
  ]
  assert.equal((await policyTest({ policy: {}, cases })).out.split('\n').at(-2), '4 cases, 0 failed')
})

test('a policy may be in its own file, relative to the file of cases', async () => {
  mkdirSync(join(folder, 'deep'))
  writeFileSync(join(folder, 'deep', 'policy.yaml'), 'on_http_request: [{ actions: [{ type: deny }] }]\n')
  const cases = 'policy_file: policy.yaml\ncases:\n  - request: { url: / }\n    expect: { status_code: 403 }\n'
  writeFileSync(join(folder, 'deep', 'cases.yaml'), cases)
  const terminal = testTerminal({ cwd: folder })
  assert.equal(await run(['policy', 'test', 'deep/cases.yaml'], terminal), 0, terminal.printed.err)
})

test('a policy for connections is a TLS policy where the case describes a name or TLS', async () => {
  const rule = { name: 'old', expressions: ["conn.tls.version == '1.2' || conn.tls.sni == 'no.test'"] }
  const policy = { on_tcp_connect: [{ ...rule, actions: [{ type: 'deny' }] }] }
  const cases = [
    { connection: { tls: { version: '1.2' } }, expect: { verdict: 'closes', matched: ['old'] } },
    { connection: { server_name: 'yes.test' }, expect: { verdict: 'passes', matched: [] } },
    { connection: { protocol: 'tls', server_name: 'No.test' }, expect: { error_code: 'ERR_CONNECTION_DENIED' } },
  ]
  assert.equal((await policyTest({ policy, cases })).out.split('\n').at(-2), '3 cases, 0 failed')
  const blind = { policy, cases: [{ connection: { protocol: 'tcp' }, expect: {} }] }
  assert.match((await policyTest(blind)).err, /which a TCP edge does not have/)
})

const request = {}
const expect = {}
const wrong: readonly (readonly [string, unknown, RegExp])[] = [
  ['no cases', { policy, cases: [] }, /standard input: `cases` needs at least 1 entry/],
  ['a field that is not known', { policy, cases: [{ request: { metod: 'A' }, expect }] }, /did you mean `method`\?/],
  ['what is no YAML', 'cases: [', /standard input is not valid YAML/],
  ['no policy', { cases: [{ request, expect }] }, /cases\[0\]: give one of `policy`/],
  ['two of them', { policy, edge_id: 'x', cases: [{ request, expect }] }, /cases\[0\]: give one of `policy`/],
  ['no traffic', { policy, cases: [{ expect }] }, /`request` or `connection` is required/],
  [
    'a policy that is not valid',
    { policy: { inbound: [{ actions: [{ type: 'denny' }] }] }, cases: [{ request, expect }] },
    /cases\[0\]: .*did you mean `deny`\?/,
  ],
  [
    'an address that is none',
    { policy, cases: [{ request, connection: { client_ip: 'x' }, expect }] },
    /`connection\.client_ip` must be/,
  ],
  [
    'a policy of a server',
    {
      policy: { inbound: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: ['ipp_1'] } }] }] },
      cases: [{ request, expect }],
    },
    /`ipp_1` is stored on a server/,
  ],
  [
    'a file that is not there',
    { policy_file: 'none.yaml', cases: [{ request, expect }] },
    /cannot read none\.yaml: ENOENT/,
  ],
  ['no key for a server', { edge_id: 'edghts_1', cases: [{ request, expect }] }, /no API key/],
]

for (const [what, file, message] of wrong) {
  test(`exit code 2: ${what}`, async () => {
    const { code, err } = await policyTest(file)
    assert.match(err, message)
    assert.equal(code, 2)
  })
}
