import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import type { RequestContext } from '../phases.ts'
import { handshake, request, response } from '../testing/test-request.ts'
import { compileTemplate, countVariables, MAX_VARIABLES, type TemplateMoment } from './templates.ts'

const tools = { now: () => Date.UTC(2026, 5, 1), region: 'eu' }

function filled(text: string, ctx: RequestContext = request(), incoming?: TemplateMoment['incoming']): string {
  const template = compileTemplate(text)
  return typeof template === 'string' ? template : template({ ctx, incoming, tools })
}

const texts: readonly [text: string, expected: string][] = [
  ['', ''],
  ['plain', 'plain'],
  ['${conn.client_ip}', '192.0.2.7'],
  ['${.conn.client_ip}', '192.0.2.7'],
  ['${ conn.client_ip }', '192.0.2.7'],
  ['a${conn.client_ip}b${conn.client_port}c', 'a192.0.2.7b40000c'],
  ['<${conn.nothing}>', '<>'],
  ['<${}>', '<>'],
  ['<${__proto__}${constructor}${toString}>', '<>'],
  ['${conn.client_ip', '${conn.client_ip'],
  ['$conn.client_ip}', '$conn.client_ip}'],
  ['$${conn.client_ip}', '$192.0.2.7'],
  ['}${conn.client_ip}{', '}192.0.2.7{'],
  ['${conn.server_ip}:${conn.server_port} in ${conn.server_region}', '198.51.100.1:443 in eu'],
  ['${conn.start_ts} ${time.now}', '2026-01-02T03:04:05Z 2026-06-01T00:00:00Z'],
  ['${.ngrok.request_id}', '0123456789abcdef0123456789abcdef'],
  ['<${http.response.status_code}${tls.version}>', '<>'],
]

for (const [text, expected] of texts) {
  test(`${JSON.stringify(text)} becomes ${JSON.stringify(expected)}`, () => assert.equal(filled(text), expected))
}

test('reads the request', () => {
  const ctx = request({ method: 'POST', target: '/a%20b?c=d', query: 'c=d', headers: { 'User-Agent': 'curl/8' } })
  const text = '${http.request.method} ${http.request.url} ${http.request.url.path} ${req.url.query} ${req.user_agent}'
  assert.equal(filled(text, ctx), 'POST https://app.example.com/a%20b?c=d /a%20b c=d curl/8')
  assert.equal(filled('${http.request.version}', request({ version: '2' })), 'HTTP/2.0')
})

test('reads what modules found out', () => {
  const found = new Map(
    Object.entries({
      'ip_policy.decision': 'allow',
      'oauth.user.email': 'a@b.c',
      'webhook_verification.decision': 'x',
    }),
  )
  const text = '${.ip_policy.decision} ${oauth.user.email} ${webhook_validation.decision}'
  assert.equal(filled(text, request({ found })), 'allow a@b.c x')
})

test('reads the response when there is one', () => {
  assert.equal(filled('${.http.response.status_code}', request(), response({ status: 418 })), '418')
})

test('reads the handshake', async () => {
  const { certificatePem } = await makeIdentity({ name: 'CN=jane', serialNumber: 'ab01' })
  const tls = handshake(new X509Certificate(certificatePem))
  const text =
    '${tls.version} ${tls.cipher_suite} ${conn.tls.sni} ${tls.client_cert.subject.cn} ${tls.client_cert.serial_number}'
  assert.equal(filled(text, request({ tls })), '1.3 TLS_AES_128_GCM_SHA256 app.example.com jane ab01')
})

test('text beyond ASCII is sent as UTF-8', () => {
  assert.equal(Buffer.from(filled('naïve 中'), 'latin1').toString('utf8'), 'naïve 中')
})

test('a value has no line breaks, whatever it holds', () => {
  const bytes = fc.string({ unit: 'binary', maxLength: 20 })
  fc.assert(
    fc.property(bytes, bytes, bytes, (text, agent, name) => {
      const ctx = request({ headers: { 'user-agent': agent }, found: new Map([['oauth.user.name', name]]) })
      const value = filled(`${text}\${req.user_agent}\${oauth.user.name}\u010a`, ctx)
      assert.match(value, /^[\t\x20-\x7e\x80-\xff]*$/)
    }),
  )
})

test('text without a variable goes through unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme-ascii' }), (text) => {
      if (!/\$\{[^}]*\}/.test(text)) assert.equal(filled(text), text)
    }),
  )
})

test('the allowed number of variables is filled in, and one more is refused', () => {
  assert.equal(filled('${conn.client_port}'.repeat(MAX_VARIABLES)).length, 5 * MAX_VARIABLES)
  assert.throws(() => compileTemplate('${1}'.repeat(MAX_VARIABLES + 1)), /over 1000 variables/)
})

test('variables are counted in one pass, even when none is closed', () => {
  // A search for each would exceed the time limit of a test file.
  assert.equal(countVariables('${'.repeat(1024 * 1024)), 0)
  assert.equal(countVariables(`${'${'.repeat(1024 * 1024)}}`), 1)
  assert.ok(countVariables('${1}'.repeat(250_000)) > MAX_VARIABLES)
})
