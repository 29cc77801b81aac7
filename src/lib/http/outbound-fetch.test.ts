/** Requests to URLs set by users: which addresses are refused, in every spelling, and the limits of a request. */
import assert from 'node:assert/strict'
import type { lookup } from 'node:dns'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { outboundRules } from '../net/outbound-rules.ts'
import { ownListeners } from '../net/own-listeners.ts'
import { isPublicAddress } from '../net/public-address.ts'
import { FETCH_MAX_BYTES, FetchFault, outboundFetch } from './outbound-fetch.ts'

/** Rules that allow these networks, beside public addresses; `own` are listeners of the server. */
const reaching = (networks: readonly string[], own: Parameters<typeof outboundRules>[1] = () => undefined) => ({
  mayReach: outboundRules(
    networks.map((network) => ({ network })),
    own,
  ),
})

const nobody = reaching([])
const everywhere = reaching(['0.0.0.0/0', '::/0'])

/** A resolver that gives these answers one after another, and then always the last. */
function resolving(...answers: readonly (readonly string[])[]) {
  const asked: string[] = []
  const resolve = ((name: string, _options: unknown, done: (error: null, found: unknown) => void) => {
    const addresses = answers[Math.min(asked.push(name), answers.length) - 1] ?? []
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }) as unknown as typeof lookup
  return { resolve, asked }
}

/** One address of each network that is not public, and its public neighbours on both sides. */
const networks4: readonly (readonly [inside: string, ...outside: string[]])[] = [
  ['0.0.0.0', '1.0.0.0'],
  ['0.255.255.255'],
  ['10.0.0.0', '9.255.255.255', '11.0.0.0'],
  ['10.255.255.255'],
  ['100.64.0.0', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.1', '126.255.255.255', '128.0.0.0'],
  ['127.255.255.254'],
  ['169.254.169.254', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.1', '172.15.255.255', '172.32.0.0'],
  ['172.31.255.255'],
  ['192.0.0.8', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.1', '192.0.3.0'],
  ['192.88.99.1', '192.88.98.255', '192.88.100.0'],
  ['192.168.1.1', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.1', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.1', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.1', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.1', '223.255.255.255'],
  ['239.255.255.255'],
  ['240.0.0.1'],
  ['255.255.255.255'],
]

const networks6: readonly (readonly [inside: string, ...outside: string[]])[] = [
  ['::'],
  ['::1'],
  ['::127.0.0.1'],
  ['64:ff9b::7f00:1'],
  ['64:ff9b:1::1'],
  ['100::1'],
  ['1fff:ffff::1', '2000::1'],
  ['2001::1', '2001:200::1'],
  ['2001:0:7f00:1::1'],
  ['2001:db8::1', '2001:db7:ffff::1', '2001:db9::1'],
  ['2002:7f00:1::1', '2003::1'],
  ['3fff::1', '3ffe:ffff::1'],
  ['4000::1'],
  ['5f00::1'],
  ['fc00::1'],
  ['fd12:3456::1'],
  ['fe80::1'],
  ['febf::1'],
  ['fec0::1'],
  ['ff02::1'],
]

test('addresses inside each special network are not public, and their neighbours outside are', () => {
  for (const [inside, ...outside] of [...networks4, ...networks6]) {
    assert.equal(isPublicAddress(inside), false, inside)
    for (const each of outside) assert.equal(isPublicAddress(each), true, each)
  }
})

/** The spellings of an IPv4 address that `new URL` and resolvers accept. */
function spellings4(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const whole = ((a * 256 + b) * 256 + c) * 256 + d
  const hex = (value: number): string => value.toString(16)
  return [
    address,
    `${address}.`,
    String(whole),
    `0x${hex(whole)}`,
    `0${whole.toString(8)}`,
    `0x${hex(a)}.0x${hex(b)}.0x${hex(c)}.0x${hex(d)}`,
    `0${a.toString(8)}.0${b.toString(8)}.0${c.toString(8)}.0${d.toString(8)}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `[::ffff:${address}]`,
    `[::ffff:${hex(a * 256 + b)}:${hex(c * 256 + d)}]`,
    `[0:0:0:0:0:ffff:${address}]`,
    `[::${address}]`,
    `[64:ff9b::${address}]`,
    `[2002:${hex(a * 256 + b)}:${hex(c * 256 + d)}::1]`,
    Array.from(address, (char) => (char === '.' ? '。' : char)).join(''),
    Array.from(address, (char) => (/\d/.test(char) ? String.fromCodePoint(0xff10 + Number(char)) : char)).join(''),
    address.replace(/^\d/, (digit) => `%3${digit}`),
  ]
}

const written = [
  ...networks4.flatMap(([inside]) => spellings4(inside)),
  ...networks6.flatMap(([inside]) => [`[${inside}]`]),
]

test(`${written.length} spellings of addresses that are not public are all refused`, async () => {
  assert.ok(written.length > 200)
  const { resolve, asked } = resolving(['127.0.0.1'])
  const fetch = outboundFetch({ ...nobody, resolve })
  for (const host of written) {
    await assert.rejects(
      fetch(`https://${host}/`),
      (error) => error instanceof FetchFault && /^(not_allowed|bad_url)$/.test(error.reason),
      host,
    )
    await assert.rejects(fetch(`http://${host}/`), FetchFault, host)
  }
  assert.deepEqual(asked, [], 'an address was taken for a name')
})

const names: readonly (readonly [what: string, addresses: readonly string[]])[] = [
  ['a private address', ['10.1.2.3']],
  ['several', ['10.1.2.3', '127.0.0.1', '::1', 'fd00::1']],
  ['an address of IPv4 in IPv6', ['::ffff:169.254.169.254']],
  ['nothing at all', []],
]

for (const [what, addresses] of names) {
  test(`a name that resolves to ${what} is refused`, async () => {
    const fetch = outboundFetch({ ...nobody, resolve: resolving(addresses).resolve })
    await assert.rejects(fetch('https://idp.example/'), { name: 'FetchFault', reason: 'not_allowed' })
  })
}

test('a name with changing answers is resolved once a request, and the checked address is dialled', async (t) => {
  const hits: string[] = []
  const { port } = await serve(t, (request, response) => response.end(String(hits.push(request.url ?? ''))))
  // The first answer is an allowed address without a listener, the second that of the service.
  const { resolve, asked } = resolving(['127.0.0.2'], ['127.0.0.1'])
  const fetch = outboundFetch({ ...reaching(['127.0.0.2/32']), resolve })
  await assert.rejects(fetch(`http://localhost:${port}/a`), { reason: 'unreachable' })
  assert.equal(asked.length, 1)
  await assert.rejects(fetch(`http://localhost:${port}/b`), { reason: 'not_allowed' })
  assert.deepEqual(hits, [])
})

test('only the allowed ones of several addresses are dialled', async (t) => {
  const { port } = await serve(t, (_request, response) => response.end('hi'))
  const { resolve } = resolving(['10.0.0.1', '127.0.0.1'])
  const fetch = outboundFetch({ ...reaching(['127.0.0.1/32']), resolve })
  assert.equal((await fetch(`http://localhost:${port}/`)).body.toString(), 'hi')
})

test('our own listener is refused even at a public address, unless that is allowed', async () => {
  const { resolve } = resolving(['192.0.1.1'])
  const isOwn = (address: string, port: number) => address === '192.0.1.1' && port === 8443
  const own = outboundFetch({ ...reaching([], (...at) => (isOwn(...at) ? 'visitors' : undefined)), resolve })
  await assert.rejects(own('https://idp.example:8443/'), { reason: 'not_allowed' })
})

test('a listener of ours that is not for visitors is refused in every spelling, also after a redirect', async (t) => {
  const asked: string[] = []
  const ours = await serve(t, (request, response) => response.end(asked.push(request.url ?? '')))
  const { port } = await serve(t, (_request, response) => {
    response.writeHead(302, { location: `http://localhost:${ours.port}/redirected` }).end()
  })
  const listenerAt = ownListeners({ control: [ours.port], visitors: [], range: { from: 1, to: 1 } })
  const { resolve } = resolving(['127.0.0.1'])
  const fetch = outboundFetch({ ...reaching(['0.0.0.0/0', '::/0'], listenerAt), resolve })
  const hosts = ['127.0.0.1', '127.1', '2130706433', '0x7f.1', '127.9.9.9', 'localhost', '[::1]', '0.0.0.0', '[::]']
  for (const host of [...hosts, '[::ffff:127.0.0.1]', '[::ffff:0.0.0.0]', 'idp.example']) {
    await assert.rejects(fetch(`https://${host}:${ours.port}/`), { reason: 'not_allowed' }, host)
    await assert.rejects(fetch(`http://${host}:${ours.port}/`), FetchFault, host)
  }
  await assert.rejects(fetch(`http://localhost:${port}/`), { reason: 'not_allowed' })
  assert.deepEqual(asked, [])
})

const badUrls = [
  ...[
    '',
    'idp.example',
    '//idp.example',
    '/path',
    'ftp://idp.example/',
    'file:///etc/passwd',
    'data:,x',
    'javascript:1',
  ],
  ...['http://idp.example/', 'http://10.0.0.1/', 'https://user:pass@idp.example/', 'https://user@idp.example/'],
  ...['https://', 'https://a b/', 'https://[::1', 'ws://idp.example/', 'http://localhost.example/'],
]
for (const url of badUrls) {
  test(`${url || 'nothing'} is refused as a URL`, async () => {
    await assert.rejects(outboundFetch(everywhere)(url), { reason: 'bad_url' })
  })
}

const local = outboundFetch(everywhere)

test('up to three redirects are followed, each one checked, and headers stay with their server', async (t) => {
  const seen: (string | undefined)[] = []
  const other = await serve(t, (request, response) => {
    seen.push(request.headers.authorization)
    response.end('there')
  })
  const { port } = await serve(t, (request, response) => {
    const left = Number(request.url?.slice(1))
    seen.push(request.headers.authorization)
    if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
    else if (request.url === '/far') response.writeHead(307, { location: `http://127.0.0.1:${other.port}/` }).end()
    else if (request.url === '/inside') response.writeHead(301, { location: 'https://10.0.0.1/' }).end()
    else if (request.url === '/plain') response.writeHead(301, { location: 'http://idp.example/' }).end()
    else response.end('done')
  })
  const headers = { authorization: 'Bearer x' }
  assert.equal((await local(`http://127.0.0.1:${port}/3`, { headers })).body.toString(), 'done')
  assert.deepEqual(seen.splice(0), Array(4).fill('Bearer x'))
  await assert.rejects(local(`http://127.0.0.1:${port}/4`), { reason: 'too_many_redirects' })
  seen.length = 0
  assert.equal((await local(`http://127.0.0.1:${port}/far`, { headers })).body.toString(), 'there')
  assert.deepEqual(seen.splice(0), ['Bearer x', undefined])
  const careful = outboundFetch(reaching(['127.0.0.1/32']))
  await assert.rejects(careful(`http://127.0.0.1:${port}/inside`), { reason: 'not_allowed' })
  await assert.rejects(careful(`http://127.0.0.1:${port}/plain`), { reason: 'bad_url' })
  const once = { maxRedirects: 1 }
  assert.equal((await local(`http://127.0.0.1:${port}/1`, once)).address, '127.0.0.1')
  await assert.rejects(local(`http://127.0.0.1:${port}/2`, once), { reason: 'too_many_redirects' })
  await assert.rejects(local(`http://127.0.0.1:${port}/4`, { maxRedirects: 9 }), { reason: 'too_many_redirects' })
  await assert.rejects(local(`http://127.0.0.1:${port}/0`, { maxBytes: 3 }), { reason: 'too_large' })
  // A request with a body does not follow redirects.
  assert.equal((await local(`http://127.0.0.1:${port}/far`, { method: 'POST', body: 'secret=1' })).status, 307)
})

test('an answer that is too long, too slow, cut short or missing is a fault', async (t) => {
  const { port } = await serve(t, (request, response) => {
    if (request.url === '/long') response.end(Buffer.alloc(FETCH_MAX_BYTES + 1))
    else if (request.url === '/whole') response.end(Buffer.alloc(FETCH_MAX_BYTES))
    else if (request.url === '/endless') {
      const more = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(more))
    } else if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': '10' })
      response.write('12345', () => response.destroy())
    } else if (request.url === '/reset') request.socket.resetAndDestroy()
  })
  const at = (path: string, timeoutMs?: number) =>
    local(`http://127.0.0.1:${port}${path}`, timeoutMs ? { timeoutMs } : {})
  await assert.rejects(at('/long'), { reason: 'too_large' })
  assert.equal((await at('/whole')).body.length, FETCH_MAX_BYTES)
  await assert.rejects(at('/endless', 200), { reason: 'timed_out' })
  await assert.rejects(at('/silent', 200), { reason: 'timed_out' })
  await assert.rejects(at('/cut'), { reason: 'unreachable' })
  await assert.rejects(at('/reset'), { reason: 'unreachable' })
})

test('an https URL with a port without a listener is unreachable', async () => {
  await assert.rejects(local('https://127.0.0.1:9/'), { reason: 'unreachable' })
})

test('a server must prove its name with a certificate of a trusted authority', async (t) => {
  const notBefore = new Date(Date.now() - 3_600_000)
  const notAfter = new Date(Date.now() + 3_600_000)
  const authority = await makeIdentity({ name: 'CN=authority', isCa: true, notBefore, notAfter })
  const stranger = await makeIdentity({ name: 'CN=stranger', isCa: true, notBefore, notAfter })
  const own = { dnsNames: ['here.example'], notBefore, notAfter }
  const issued = await makeIdentity({ ...own, issuer: authority })
  const selfSigned = await makeIdentity(own)
  const expired = await makeIdentity({ ...own, issuer: authority, notAfter: new Date(Date.now() - 60_000) })
  const asked: string[] = []
  const server = (identity: typeof issued) => {
    const { certificatePem: cert, privateKeyPem: key } = identity
    return listening(
      t,
      createSecureServer({ cert, key }, ({ headers }, response) => {
        asked.push(headers.host ?? '')
        response.end('ok')
      }),
    )
  }
  const { resolve } = resolving(['127.0.0.1'])
  const ask = async (identity: typeof issued, { host = 'here.example', ca }: { host?: string; ca?: string[] }) => {
    const { port } = await server(identity)
    const fetch = outboundFetch({ ...everywhere, resolve, ...(ca && { ca }) })
    return fetch(`https://${host}:${port}/`)
  }
  const ca = [authority.certificatePem]
  const cases: [what: string, answer: () => Promise<unknown>, why: RegExp][] = [
    ['nobody vouches for it', () => ask(selfSigned, {}), /self-signed certificate/],
    ['its authority is not one of Node', () => ask(issued, {}), /unable to verify/],
    ['another authority is trusted', () => ask(issued, { ca: [stranger.certificatePem] }), /unable to verify/],
    ['it is for another name', () => ask(issued, { ca, host: 'there.example' }), /does not match certificate/],
    ['it is for a name, not the address', () => ask(issued, { ca, host: '127.0.0.1' }), /does not match certificate/],
    ['it has expired', () => ask(expired, { ca }), /expired/],
  ]
  for (const [what, answer, why] of cases) {
    await assert.rejects(answer, { name: 'FetchFault', reason: 'unreachable', message: why }, what)
  }
  assert.deepEqual(asked, [], 'no request was sent')
  assert.equal((await ask(issued, { ca }).then(({ body }) => body)).toString(), 'ok')
  assert.equal(asked.length, 1)
})

function serve(t: TestContext, listener: RequestListener): Promise<{ readonly port: number }> {
  return listening(t, createServer(listener))
}

async function listening(t: TestContext, server: Server): Promise<{ readonly port: number }> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port } // it listens on a port
}
