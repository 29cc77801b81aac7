/** Options of a bind guard and change traffic; a bind whose guard cannot be provided is refused, never served. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import { type Identity, makeIdentity } from '../../support/make-certificate.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { httpUpstream, type Seen, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, dialTls, exchange, visit } from '../../support/visitor.ts'
import { WebSocketVisitor } from '../../support/websocket.ts'
import { eachAgent, refusal, tunnelAt } from './each-agent.ts'

const seen = (text: string): Seen => JSON.parse(text)

eachAgent((stage, test) => {
  test('basic auth', async (t) => {
    const { address } = await httpUpstream(t)
    const { url } = await stage.open(t, { addr: address, basic_auth: ['user:password', 'other:pass word'] })
    const login = (pair: string) => ({
      headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}` },
    })
    for (const pair of ['user:password', 'other:pass word']) {
      assert.equal((await visit(url, stage.platform, login(pair))).status, 200)
    }
    for (const ask of [{}, login('user:Password'), login('other:password'), login('user'), login('')]) {
      const answer = await visit(url, stage.platform, ask)
      assert.equal(answer.status, 401)
      assert.match(String(answer.headers['www-authenticate']), /^Basic realm=/)
      assert.ok(!answer.text.includes('"url"'))
    }
  })

  for (const proto of ['http', 'tcp', 'tls'] as const) {
    test(`ip restriction of ${proto}`, async (t) => {
      const { address } = proto === 'http' ? await httpUpstream(t) : await tcpUpstream(t)
      const identity = await tlsIdentity(['ip.example.com'])
      const at: TunnelOptions = {
        addr: proto === 'tls' ? `tcp://${address}` : address,
        proto,
        ...(proto === 'tls' && {
          terminate_at: 'edge',
          crt: identity.cert,
          key: identity.key,
          domain: 'ip.example.com',
        }),
      }
      const isLetIn = async (ip_restriction: TunnelOptions['ip_restriction']): Promise<boolean> => {
        const tunnel = await stage.open(t, { ...at, ip_restriction })
        try {
          if (proto === 'http') return (await visit(tunnel.url, stage.platform)).status === 200
          const socket =
            proto === 'tcp'
              ? await dialTcp(tunnel.url)
              : await dialTls(tunnel.url, { ca: identity.ca }).catch(() => null)
          return socket !== null && (await exchange(socket, 'in').catch(() => '')) === 'in'
        } finally {
          await tunnel.close()
        }
      }
      assert.equal(await isLetIn({ allow: ['127.0.0.0/8'] }), true)
      assert.equal(await isLetIn({ allow: ['192.0.2.0/24', '2001:db8::/32'] }), false)
      assert.equal(await isLetIn({ allow: ['0.0.0.0/0'], deny: ['127.0.0.1/32'] }), false)
      assert.equal(await isLetIn({ allow: ['0.0.0.0/0'], deny: ['127.0.0.2/32'] }), true)
    })
  }

  test('request and response headers', async (t) => {
    const { address } = await httpUpstream(t, (request, response) => {
      response.setHeader('x-secret', 'of the service')
      response.end(JSON.stringify({ headers: request.headers }))
    })
    const { url } = await stage.open(t, {
      addr: address,
      request_headers: { add: { 'x-added': 'there', 'x-also': 'a:b' }, remove: ['x-gone'] },
      response_headers: { add: { 'x-back': 'here' }, remove: ['x-secret'] },
    })
    const answer = await visit(url, stage.platform, { headers: { 'x-gone': 'never seen', 'x-kept': 'seen' } })
    const { headers } = seen(answer.text)
    assert.deepEqual(
      [headers['x-added'], headers['x-also'], headers['x-gone'], headers['x-kept']],
      ['there', 'a:b', undefined, 'seen'],
    )
    assert.deepEqual([answer.headers['x-back'], answer.headers['x-secret']], ['here', undefined])
  })

  test('compression, for visitors that accept it', async (t) => {
    const text = 'the same words again and again. '.repeat(500)
    const { address } = await httpUpstream(t, (_, response) => {
      response.setHeader('content-type', 'text/plain')
      response.end(text)
    })
    const { url } = await stage.open(t, { addr: address, compression: true })
    const squeezed = await visit(url, stage.platform, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(squeezed.headers['content-encoding'], 'gzip')
    assert.ok(squeezed.body.length < text.length / 10)
    assert.equal(gunzipSync(squeezed.body).toString(), text)
    const plain = await visit(url, stage.platform)
    assert.deepEqual([plain.headers['content-encoding'], plain.text], [undefined, text])
  })

  test('circuit breaker: a service that keeps failing is no longer called', async (t) => {
    let asked = 0
    const { address } = await httpUpstream(t, (_, response) => {
      asked++
      response.writeHead(500).end()
    })
    const { url } = await stage.open(t, { addr: address, circuit_breaker: 0.5 })
    const codes: unknown[] = []
    while (codes.length < 40) codes.push((await visit(url, stage.platform)).headers['postern-error-code'])
    assert.ok(asked >= 1 && asked < codes.length, `asked ${asked} times`)
    assert.equal(codes.at(-1), 'ERR_CIRCUIT_OPEN')
  })

  test('user agent filter', async (t) => {
    const { address } = await httpUpstream(t)
    // D35: an allowed user agent gets in even if it is also denied; an absent one must be allowed.
    const { url } = await stage.open(t, {
      addr: address,
      user_agent_filter: { allow: ['^curl/'], deny: ['bot', '^x'] },
    })
    const ask = async (agent: string) => (await visit(url, stage.platform, { headers: { 'user-agent': agent } })).status
    assert.deepEqual(
      [await ask('curl/8 bot'), await ask('other'), await ask('robot'), await ask('x')],
      [200, 200, 403, 403],
    )
    assert.equal((await visit(url, stage.platform)).status, 403)
  })

  test('webhook verification', async (t) => {
    const { address } = await httpUpstream(t)
    const secret = 'the secret of both'
    const { url } = await stage.open(t, { addr: address, webhook_verification: { provider: 'github', secret } })
    const body = '{"event":"push"}'
    const sign = (key: string) => `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
    const send = (headers: Record<string, string>) => visit(url, stage.platform, { method: 'POST', body, headers })
    const passed = await send({ 'x-hub-signature-256': sign(secret) })
    assert.deepEqual([passed.status, seen(passed.text).body], [200, body])
    assert.equal((await send({ 'x-hub-signature-256': sign('another') })).status, 403)
    assert.equal((await send({})).status, 403)
  })

  for (const proto of ['http', 'tls'] as const) {
    test(`mutual TLS of ${proto}`, async (t) => {
      const { ca, mine, stranger } = await clients()
      const { address } = proto === 'http' ? await httpUpstream(t) : await tcpUpstream(t)
      const edge = await tlsIdentity(['mutual.example.com'])
      const { url } = await stage.open(t, {
        addr: proto === 'tls' ? `tcp://${address}` : address,
        proto,
        domain: 'mutual.example.com',
        mutual_tls: ca.certificatePem,
        ...(proto === 'tls' && { terminate_at: 'edge', crt: edge.cert, key: edge.key }),
      })
      const isLetIn = async (identity?: { cert: string; key: string }): Promise<boolean> => {
        try {
          if (proto === 'http') {
            const answer = await visit(url, stage.platform, { ...(identity && { identity }) })
            return answer.status === 200
          }
          return (await exchange(await dialTls(url, { ca: edge.ca, ...identity }), 'in')) === 'in'
        } catch {
          return false
        }
      }
      assert.equal(await isLetIn(mine), true)
      assert.equal(await isLetIn(stranger), false)
      assert.equal(await isLetIn(), false)
    })
  }

  test('websocket converter: a WebSocket visitor reaches a TCP service', async (t) => {
    const { address } = await tcpUpstream(t)
    const { url } = await stage.open(t, { addr: address, websocket_tcp_converter: true })
    const visitor = await WebSocketVisitor.open(url, stage.platform)
    t.after(() => visitor.close())
    visitor.send(Buffer.from('over a message'))
    assert.equal((await visitor.receive()).toString(), 'over a message')
    const plain = await visit(url, stage.platform)
    assert.deepEqual([plain.status, plain.headers['postern-error-code']], [400, 'ERR_WEBSOCKET_REQUIRED'])
  })

  describe('a bind is refused', () => {
    const domain = 'guarded.example.com'
    const policy = (phase: string) => `${phase}:\n  - actions:\n      - type: deny\n`
    const cases: [what: string, tunnel: TunnelOptions, ngrok: number, words: RegExp][] = [
      [
        'with a policy for connections on http',
        { traffic_policy: policy('on_tcp_connect') },
        2201,
        /does not happen on a route/,
      ],
      [
        'with a policy for requests on tcp',
        { proto: 'tcp', traffic_policy: policy('on_http_request') },
        2201,
        /does not happen on a TCP edge/,
      ],
      ['with a password that is too short', { basic_auth: ['user:short'] }, 360, /8 to 128/],
      ['with an invalid network', { ip_restriction: { allow: ['10.0.0.0/33'] } }, 362, /0 to 32/],
      ['with an invalid header', { request_headers: { add: { 'bad name': 'x' } } }, 372, /bad name/],
      [
        'with a header that agents may not set',
        { request_headers: { add: { 'content-length': '1' } } },
        372,
        /content-length/,
      ],
      [
        'for an unknown sender of webhooks',
        { webhook_verification: { provider: 'nobody', secret: 'x' } },
        364,
        /github/,
      ],
      ['with an invalid pattern', { user_agent_filter: { allow: ['('] } }, 2090, /regular expression/],
    ]
    for (const [what, tunnel, ngrok, words] of cases) {
      test(what, async (t) => {
        const { address } = await httpUpstream(t)
        const named = tunnel.proto === 'tcp' ? tunnel : { ...tunnel, domain }
        await assert.rejects(stage.open(t, { addr: address, ...named }), refusal(ngrok, words))
        // No part of it is served, and its name is free.
        const url = `https://${domain}:${stage.platform.httpsPort}`
        assert.equal(await tunnelAt(stage.platform, url), undefined)
        const free = await stage.open(t, { addr: address, domain })
        assert.equal(free.url, url)
        await free.close()
      })
    }
  })
})

async function clients() {
  const valid = { notBefore: new Date(Date.now() - 3_600_000), notAfter: new Date(Date.now() + 3_600_000) }
  const ca = await makeIdentity({ name: 'CN=CA of clients', isCa: true, ...valid })
  const other = await makeIdentity({ name: 'CN=CA of strangers', isCa: true, ...valid })
  const pair = async (issuer: Identity) => {
    const { certificatePem, privateKeyPem } = await makeIdentity({ name: 'CN=client', issuer, ...valid })
    return { cert: certificatePem, key: privateKeyPem }
  }
  return { ca, mine: await pair(ca), stranger: await pair(other) }
}
