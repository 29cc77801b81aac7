import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type ConnectionOptions, createServer, type SecureVersion } from 'node:tls'
import {
  closed,
  dialled,
  Front,
  type FrontOptions,
  heardHello,
  isResumed,
  sessionFrom,
  tlsEdge,
} from './testing/test-front.ts'
import { checkSocketBelow } from './tls-servers.ts'
import { serverOptions } from './tls-versions.ts'

const fronts: Front[] = []
after(() => Promise.all(fronts.map((front) => front.stop())))

async function start(options: FrontOptions): Promise<Front> {
  const front = await new Front(options).start()
  fronts.push(front)
  return front
}

const only = (version: SecureVersion): ConnectionOptions => ({ minVersion: version, maxVersion: version })
const modern = ['TLSv1.2', 'TLSv1.3'] as const

test('a handshake gives the connection and what was negotiated', async () => {
  const front = await start({ edges: { 'a.test': tlsEdge('a') } })
  for (const version of modern) {
    const visitor = await front.enter('A.test', { ...only(version), ALPNProtocols: ['http/1.1'] })
    const { facts } = await front.secured()
    assert.deepEqual(
      { ...facts, cipher: facts.cipher.length > 8 },
      {
        ...{ serverName: 'a.test', version, cipher: true, alpn: 'http/1.1' },
        ...{ isResumed: false, clientCertificate: undefined },
      },
    )
    assert.equal(visitor.authorized, true)
    assert.deepEqual(visitor.getPeerX509Certificate()?.subjectAltName, 'DNS:a.test')
    visitor.destroy()
  }
  assert.equal(front.servers.size, 1)
})

test('the cipher is the cheaper one, unless the client has no AES in hardware or offers only another', async () => {
  const front = await start({ edges: { 'a.test': tlsEdge('a') } })
  const [aes128, aes256, chacha] = [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
  ] as const
  const offers: [string, string][] = [
    [`${aes256}:${chacha}:${aes128}`, aes128],
    [`${chacha}:${aes128}:${aes256}`, chacha],
    [aes256, aes256],
  ]
  for (const [ciphers, agreed] of offers) {
    const visitor = await front.enter('a.test', { ...only('TLSv1.3'), ciphers })
    assert.equal(visitor.getCipher().name, agreed, ciphers)
    assert.equal((await front.secured()).facts.cipher, agreed)
    visitor.destroy()
  }
})

test('each side can end while the other goes on', async () => {
  const front = await start({ edges: { 'a.test': tlsEdge('a') } })
  const visitor = await front.enter('a.test')
  visitor.allowHalfOpen = true
  const { socket } = await front.secured()
  visitor.end('last words')
  const heard = (await socket.toArray()) as Buffer[]
  assert.equal(Buffer.concat(heard).toString(), 'last words')
  socket.end('an answer')
  const answer = (await visitor.toArray()) as Buffer[]
  assert.equal(Buffer.concat(answer).toString(), 'an answer')
})

describe('the lowest version of an edge', () => {
  const versions = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const
  let front: Front
  before(async () => {
    const edges = [undefined, ...versions].map((minVersion) => {
      const edge = tlsEdge(String(minVersion), minVersion ? { minVersion } : {})
      return [`${String(minVersion).toLowerCase()}.test`, edge] as const
    })
    front = await start({ edges: Object.fromEntries(edges) })
  })

  for (const [i, lowest] of [undefined, ...versions].entries()) {
    for (const [j, version] of versions.entries()) {
      const isServed = j >= (i === 0 ? 2 : i - 1)
      test(`${lowest ?? 'unset'} ${isServed ? 'serves' : 'refuses'} ${version}`, async () => {
        const name = `${String(lowest).toLowerCase()}.test`
        const options = { ...only(version), ciphers: 'DEFAULT@SECLEVEL=0' }
        if (isServed) {
          const visitor = await front.enter(name, options)
          visitor.destroy()
          assert.equal((await front.secured()).facts.version, version)
        } else {
          assert.match(await front.refusal(name, options), /alert number 70|alert protocol version/)
          assert.equal((await front.fault()).fault, 'refused')
        }
      })
    }
  }
})

describe('application protocols', () => {
  let front: Front
  before(async () => {
    front = await start({ edges: { 'h.test': tlsEdge('h'), 't.test': tlsEdge('t', {}, 'tls') } })
  })
  const cases: [name: string, offered: string[], agreed: string | RegExp][] = [
    ['h.test', ['h2', 'http/1.1'], 'h2'],
    ['h.test', ['http/1.1', 'h2'], 'h2'],
    ['h.test', ['http/1.1'], 'http/1.1'],
    ['h.test', ['x', 'http/1.1'], 'http/1.1'],
    ['h.test', [], ''],
    ['h.test', ['http/1.0'], 'http/1.0'],
    ['h.test', ['x'], /no application protocol/],
    ['t.test', [], ''],
    ['t.test', ['x'], 'x'],
    ['t.test', ['h2'], 'h2'],
    ['t.test', ['x', 'y'], ''],
    ['t.test', ['h2', 'http/1.1'], ''],
  ]
  for (const [name, offered, agreed] of cases) {
    test(`of ${offered.join(' and ') || 'none'}, ${name} agrees on ${String(agreed) || 'none'}`, async () => {
      const options = offered.length > 0 ? { ALPNProtocols: offered } : {}
      if (agreed instanceof RegExp) {
        assert.match(await front.refusal(name, options), agreed)
        assert.equal((await front.fault()).fault, 'refused')
        return
      }
      const visitor = await front.enter(name, options)
      assert.equal(visitor.alpnProtocol || '', agreed)
      assert.equal((await front.secured()).facts.alpn, agreed)
      visitor.destroy()
    })
  }
})

describe('servers', () => {
  test('are created on first use, and shared where nothing differs', async () => {
    const edges = Object.fromEntries(['a', 'b', 'c'].map((id) => [`${id}.e.test`, tlsEdge(id)]))
    const front = await start({ edges: { ...edges, 'd.e.test': tlsEdge('d', { minVersion: 'TLSv1.3' }) } })
    assert.equal(front.servers.size, 0)
    front.certificates.replace(new Map([['*.e.test', front.certificates.find('*.e.test')]]))
    for (const id of ['a', 'b', 'c']) (await front.enter(`${id}.e.test`)).destroy()
    assert.equal(front.servers.size, 1)
    const other = await front.enter('d.e.test')
    other.destroy()
    assert.equal(front.servers.size, 2)
  })

  test('are bounded, and those in use survive', async () => {
    const edges = Object.fromEntries(['a', 'b', 'c'].map((id) => [`${id}.test`, tlsEdge(id)]))
    const front = await start({ edges, servers: { maxServers: 2 } })
    const first = await sessionFrom(front, 'a.test')
    for (const id of ['b', 'a', 'c', 'a']) (await front.enter(`${id}.test`)).destroy()
    assert.equal(front.servers.size, 2)
    for (let i = 0; i < 4; i++) await front.secured()
    assert.equal(await isResumed(front, 'a.test', { session: first }), true)
  })

  test('are dropped after an hour without a visitor', async () => {
    let now = Date.now()
    const edges = { 'a.test': tlsEdge('a'), 'b.test': tlsEdge('b') }
    const front = await start({ edges, servers: { now: () => now } })
    for (const name of ['a.test', 'b.test']) (await front.enter(name)).destroy()
    now += 3_600_001
    const visitor = await front.enter('b.test')
    visitor.destroy()
    assert.equal(front.servers.size, 1)
  })

  test('are dropped a minute after the last visitor of a name no longer served, with their certificates', async () => {
    let now = Date.now()
    const edges = { 'stays.test': tlsEdge('a'), 'goes.test': tlsEdge('b') }
    const front = await start({ edges, servers: { now: () => now } })
    for (const name of ['stays.test', 'goes.test']) (await front.enter(name)).destroy()
    const [stays, goes] = ['stays.test', 'goes.test'].map((name) => front.certificates.find(name).id)
    const dropGone = (): void => front.servers.dropGone((name) => name === 'stays.test')
    // An agent that reconnects is back soon.
    now += 59_000
    dropGone()
    assert.equal(front.servers.size, 2)
    now += 2000
    dropGone()
    assert.equal(front.servers.size, 1)
    assert.equal(front.certificates.find('stays.test').id, stays)
    assert.notEqual(front.certificates.find('goes.test').id, goes)
  })

  test('hold no memory of others', async () => {
    const { certificates } = await start({})
    const certificate = certificates.find('a.test')
    const server = createServer(serverOptions({}, { key: 'a', offer: 'http', certificate }))
    // Where Node keeps it; from a list it would make a slice of 64 KiB that all buffers share.
    const { ALPNProtocols: kept } = server as unknown as { readonly ALPNProtocols: Buffer }
    assert.equal(kept.toString('latin1'), '\x02h2\x08http/1.1\x08http/1.0')
    assert.equal(kept.buffer.byteLength, kept.length)
  })

  test('a certificate that comes with the edge is shown for every name', async () => {
    const front = await start({})
    const { cert, key } = front.certificates.find('own.test')
    front.edges.set('a.test', tlsEdge('a', { certificate: { cert, key } }))
    const visitor = await front.enter('a.test', { checkServerIdentity: () => undefined })
    assert.equal(visitor.getPeerX509Certificate()?.subjectAltName, 'DNS:own.test')
    visitor.destroy()
  })

  test('an edge with an unusable certificate closes, is logged once, and does not hold up others', async () => {
    const certificate = { cert: 'no certificate', key: 'no key' }
    const front = await start({ edges: { 'a.test': tlsEdge('a', { certificate }), 'b.test': tlsEdge('b') } })
    for (let i = 0; i < 3; i++) {
      assert.match(await front.refusal('a.test'), /alert number 80|internal error/)
      assert.equal((await front.fault()).fault, 'broken')
    }
    assert.equal(front.logged.filter((line) => line.includes('TLS server of an edge cannot be made')).length, 1)
    assert.doesNotMatch(front.logged.join(''), /no key/)
    const visitor = await front.enter('b.test')
    visitor.destroy()
  })

  test('an unusable authority closes the edge', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a', { clientAuthorities: ['nonsense'] }) } })
    assert.doesNotMatch(await front.refusal('a.test'), /hello/)
    await front.fault()
  })
})

describe('a visitor who stalls', () => {
  test('is closed when the time is over, though bytes keep coming', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a') }, servers: { handshakeTimeoutMs: 150 } })
    const socket = await greeted(front)
    // A record that claims to be long, so that the following bytes are part of it.
    socket.write(Buffer.from([23, 3, 3, 0x40, 0]))
    const drip = setInterval(() => socket.write(Buffer.alloc(1)), 20)
    await closed(socket)
    clearInterval(drip)
    assert.equal((await front.fault()).fault, 'timeout')
    assert.equal(front.servers.pending, 0)
  })

  test('is closed when too many wait, the oldest first', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a') }, servers: { maxPending: 2 } })
    const [oldest, other] = [await greeted(front), await greeted(front)]
    const visitor = await front.enter('a.test')
    await closed(oldest)
    assert.equal((await front.fault()).fault, 'crowded')
    await front.secured()
    assert.equal(front.servers.pending, 1)
    assert.equal(other.closed, false)
    other.destroy()
    visitor.destroy()
  })

  test('who resets, ends or sends nonsense is forgotten', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a') } })
    const ways: Record<string, (socket: Socket) => void> = {
      reset: (socket) => socket.resetAndDestroy(),
      close: (socket) => socket.destroy(),
      end: (socket) => socket.end(),
      nonsense: (socket) => socket.write(Buffer.alloc(100, 0x55)),
    }
    for (const [name, act] of Object.entries(ways)) {
      const socket = await greeted(front)
      act(socket)
      const { fault } = await front.fault()
      assert.equal(fault, name === 'nonsense' ? 'refused' : 'closed', name)
      socket.destroy()
      assert.equal(front.servers.pending, 0, name)
    }
  })

  test('an error of the caller ends only that connection', async () => {
    let calls = 0
    const front = await start({
      edges: { 'a.test': tlsEdge('a') },
      onSecured: ({ socket }) => {
        if (++calls === 1) throw new Error('a mistake of the caller')
        socket.write('hello')
      },
    })
    assert.doesNotMatch(await front.refusal('a.test'), /hello/)
    const visitor = await front.enter('a.test')
    visitor.destroy()
    assert.equal(front.logged.filter((line) => line.includes('a mistake of the caller')).length, 1)
  })

  test('an open connection is never renegotiated', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a') } })
    const visitor = await front.enter('a.test', only('TLSv1.2'))
    const error = new Promise((resolve) => visitor.once('error', resolve))
    assert.equal(
      visitor.renegotiate({}, () => {}),
      true,
    )
    assert.match(String(await error), /no renegotiation/i)
    visitor.destroy()
  })

  test('errors after the handshake end the connection and not the process', async () => {
    const front = await start({ edges: { 'a.test': tlsEdge('a') } })
    const raw = await dialled(front.port)
    const visitor = await front.enter('a.test', { socket: raw })
    const { socket } = await front.secured()
    raw.write(Buffer.concat([Buffer.from([23, 3, 3, 0, 40]), Buffer.alloc(40, 1)]))
    await closed(socket)
    visitor.destroy()
  })
})

/** A connection whose hello was sent, and that has seen the server's answer. */
async function greeted(front: Front): Promise<Socket> {
  const hello = await heardHello((port) => front.visit('a.test', { port }))
  const socket = await dialled(front.port)
  socket.write(hello)
  await once(socket, 'data')
  return socket.resume()
}

test('a Node whose TLS sockets do not expose the socket below is refused at the start, and this one is not', () => {
  checkSocketBelow()
  assert.throws(() => checkSocketBelow(() => undefined), /cannot be used.*_parent/)
})
