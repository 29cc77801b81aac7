/** Visitors behind a load balancer: a trusted hop tells their address, which counts everywhere; no other peer can. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type Listener, listener, type Recorder, recorder } from './edges/upstreams.ts'
import { type Answer, askHttp1, askHttp2, http2Over, readToEnd, versions } from './edges/visitor.ts'
import { type HttpsEdge, type RawEdge, World } from './edges/world.ts'

const HOP = '127.0.0.2'

let world: World
let web: Recorder
let bytes: Listener
let https: HttpsEdge
let tcp: RawEdge
let tls: RawEdge
before(async () => {
  world = await World.start({ flags: { 'trusted-proxies': `${HOP}/32` } })
  web = await recorder(world)
  bytes = await listener(world, (socket) => socket.end('hello'))
  const allowed = await world.ipPolicy({ allow: ['110.0.0.0/8'] })
  const denied = await world.ipPolicy({ deny: ['110.2.3.4/32'] })
  const ip_restriction = { ip_policy_ids: [allowed, denied] }
  https = await world.httpsTo(web, { ip_restriction, request_headers: { add: { 'x-ip': '${conn.client_ip}' } } })
  const backend = await world.toAddress(bytes)
  tcp = await world.tcpEdge({ backend, ip_restriction })
  tls = await world.tlsEdge({ backend, ip_restriction, tls_termination: {} })
})
after(() => world.stop())

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** Version 1 is a line of text. */
function v1(ip: string): Buffer {
  return Buffer.from(ip.includes(':') ? `PROXY TCP6 ${ip} ::1 4000 443\r\n` : `PROXY TCP4 ${ip} 127.0.0.1 4000 443\r\n`)
}

/** Version 2 is binary; the bytes after the addresses are to be skipped. */
function v2(ip: string, { command = 1 } = {}): Buffer {
  const isV6 = ip.includes(':')
  const addresses = isV6
    ? Buffer.concat([ipv6Bytes(ip), ipv6Bytes('::1')])
    : Buffer.from([...ip.split('.').map(Number), 127, 0, 0, 1])
  const rest = Buffer.concat([addresses, Buffer.from([15, 160, 1, 187]), Buffer.from('0400020000', 'hex')])
  const size = Buffer.alloc(2)
  size.writeUInt16BE(rest.length)
  return Buffer.concat([SIGNATURE, Buffer.from([0x20 | command, isV6 ? 0x21 : 0x11]), size, rest])
}

function ipv6Bytes(ip: string): Buffer {
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(ip) ?? []
  if (mapped)
    return Buffer.concat([Buffer.from('00000000000000000000ffff', 'hex'), Buffer.from(mapped.split('.').map(Number))])
  const [head = '', tail = ''] = ip.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => group.padStart(4, '0')))
  const [front, back] = [groups(head), groups(tail)]
  const middle = Array.from({ length: 8 - front.length - back.length }, () => '0000')
  return Buffer.from([...front, ...middle, ...back].join(''), 'hex')
}

/** A connection from the hop, or from another peer, that begins with `header`. */
async function arrive(port: number, header: Buffer, { from = HOP, isSplit = false } = {}): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const cut = isSplit ? Math.floor(header.length / 2) : header.length
  socket.write(header.subarray(0, cut))
  if (isSplit) {
    await new Promise((resolve) => setImmediate(resolve))
    socket.write(header.subarray(cut))
  }
  return socket
}

async function askThrough(below: Socket, version: '1.1' | '2', headers: Record<string, string> = {}): Promise<Answer> {
  const { name } = https
  const alpn = [version === '2' ? 'h2' : 'http/1.1']
  const socket = connectTls({ socket: below, servername: name, ca: world.platform.ca, ALPNProtocols: alpn })
  socket.on('error', () => {})
  await Promise.race([once(socket, 'secureConnect'), once(below, 'close').then(() => assert.fail('closed'))])
  if (version === '1.1') {
    const answer = await askHttp1(socket, { name }, { headers })
    socket.destroy()
    return answer
  }
  const session = http2Over(socket, { name })
  const answer = await askHttp2(session, { name }, { headers })
  session.destroy()
  return answer
}

/** Visitors by address, and whether the rules let them in (D36). */
const visitors: readonly [ip: string, reported: string, passes: boolean][] = [
  ['110.2.3.4', '110.2.3.4', false],
  ['110.9.9.9', '110.9.9.9', true],
  ['9.9.9.9', '9.9.9.9', false],
  ['2001:db8::1', '2001:db8::1', false],
  ['::ffff:110.9.9.9', '110.9.9.9', true],
  ['::ffff:110.2.3.4', '110.2.3.4', false],
]

for (const [header, make] of Object.entries({ 'version 1': v1, 'version 2': (ip: string) => v2(ip) })) {
  describe(`a hop that says by ${header}`, () => {
    for (const [ip, reported, passes] of visitors) {
      for (const version of versions) {
        test(`that ${ip} visits: it is ${passes ? 'let in' : 'kept out'} over HTTP/${version}`, async () => {
          const before = web.seen.length
          const below = await arrive(world.platform.httpsPort, make(ip), { isSplit: version === '2' })
          const answer = await askThrough(below, version, { 'x-forwarded-for': '1.1.1.1' })
          assert.deepEqual([answer.status, answer.code], passes ? [200, undefined] : [403, 'ERR_IP_REFUSED'])
          assert.equal(web.seen.length - before, passes ? 1 : 0)
          if (!passes) return
          assert.deepEqual(web.last.all('x-forwarded-for'), [`1.1.1.1, ${reported}`])
          assert.equal(web.last.get('x-ip'), reported)
        })
      }

      test(`that ${ip} visits: it is ${passes ? 'let in' : 'kept out'} on TCP and TLS edges`, async () => {
        const before = bytes.sockets.length
        const plain = await arrive(tcp.port, make(ip), { isSplit: true })
        assert.equal((await readToEnd(plain)).toString(), passes ? 'hello' : '')
        const below = await arrive(tls.port, make(ip))
        const secured = connectTls({ socket: below, servername: tls.name, ca: world.platform.ca })
        secured.on('error', () => {})
        assert.equal((await readToEnd(secured)).toString(), passes ? 'hello' : '')
        assert.equal(bytes.sockets.length - before, passes ? 2 : 0)
      })
    }
  })
}

for (const version of versions) {
  test(`what a hop says about the visit over HTTP/${version} reaches the service, and ours comes after it`, async () => {
    const below = await arrive(world.platform.httpsPort, v1('110.9.9.9'))
    const said = { 'x-forwarded-proto': 'http', 'x-forwarded-host': 'b.test', 'x-real-ip': '110.9.9.8' }
    assert.equal((await askThrough(below, version, said)).status, 200)
    assert.deepEqual(web.last.all('x-forwarded-proto'), ['http, https'])
    assert.deepEqual(web.last.all('x-forwarded-host'), ['b.test'])
    assert.deepEqual(web.last.all('x-real-ip'), ['110.9.9.8'])
  })
}

test('a connection that the hop makes itself has the address of the hop', async () => {
  const below = await arrive(world.platform.httpsPort, v2(HOP, { command: 0 }))
  assert.equal((await askThrough(below, '1.1')).code, 'ERR_IP_REFUSED')
})

test('a hop with a missing or malformed header is not let in', async () => {
  const before = bytes.sockets.length
  const nonsense = [
    'PROXY TCP4 110.9.9.9\r\n',
    'PROXY TCP4 110.9.9.9 127.0.0.1 4000 443\n',
    'PROXY TCP4 110.9.9.999 127.0.0.1 4000 443\r\n',
    'PROXY TCP4 110.9.9.9 127.0.0.1 4000 99999\r\n',
    `PROXY TCP4 ${'1'.repeat(200)}`,
    'GET / HTTP/1.1\r\n\r\n',
    `${SIGNATURE.toString('latin1')}\x31\x11\x00\x0c${'\0'.repeat(12)}`,
    `${SIGNATURE.toString('latin1')}\x21\x11\xff\xff`,
  ]
  for (const text of nonsense) {
    const socket = await arrive(tcp.port, Buffer.from(text, 'latin1'))
    socket.end()
    assert.equal((await readToEnd(socket)).length, 0, JSON.stringify(text))
  }
  assert.equal(bytes.sockets.length, before)
})

test('a header from any other peer is not accepted', async () => {
  const [shown, seen] = [bytes.sockets.length, web.seen.length]
  for (const header of [v1('110.9.9.9'), v2('110.9.9.9')]) {
    const plain = await arrive(tcp.port, header, { from: '127.0.0.1' })
    assert.equal((await readToEnd(plain)).length, 0, 'the address of the socket counts, and is refused')
    const below = await arrive(world.platform.httpsPort, header, { from: '127.0.0.3' })
    await assert.rejects(askThrough(below, '1.1'), 'a header is not a ClientHello')
  }
  assert.deepEqual([bytes.sockets.length, web.seen.length], [shown, seen])
})

test('the plain listener reads the header of the hop too', async () => {
  const below = await arrive(world.platform.httpPort, v1('110.9.9.9'))
  const { status } = await askHttp1(below, https)
  assert.equal(status, 307)
  below.destroy()
})
