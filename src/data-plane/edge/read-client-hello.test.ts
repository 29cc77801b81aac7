import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { connect, createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import { relay } from '../../lib/bytes/relay.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { Authority, createAuthority } from '../../lib/x509/certificate-authority.ts'
import type { ClientHello } from './client-hello.ts'
import { type ClientHelloFault, readClientHello, turnAway } from './read-client-hello.ts'
import { closed, dialled, heardHello } from './testing/test-front.ts'

const made = createAuthority()
const { cert, key } = new Authority(made.certPem, made.keyPem).issue(['a.test'])

let hello: Buffer
let server: Server
let secure: TlsServer
/** Handles the next connection. */
let take: (socket: Socket) => void

before(async () => {
  hello = await heardHello((port) => connect({ port, servername: 'a.test' }).on('error', () => {}))
  server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => take(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  secure = createTlsServer({ cert, key })
})
after(() => server.close())

const port = (): number => (server.address() as AddressInfo).port

/** Both ends of an untouched connection. */
async function pair(): Promise<{ visitor: Socket; accepted: Socket }> {
  const arrival = new Promise<Socket>((resolve) => {
    take = resolve
  })
  const visitor = await dialled(port())
  return { visitor, accepted: await arrival }
}

function peeked(socket: Socket, options?: { timeoutMs: number }): Promise<ClientHello | ClientHelloFault> {
  return new Promise((resolve) => readClientHello(socket, resolve, options))
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

/** Writes the pieces, each when the one before has been read. */
async function writePieces(visitor: Socket, accepted: Socket, pieces: readonly Buffer[]): Promise<void> {
  let sent = 0
  for (const piece of pieces) {
    visitor.write(piece)
    sent += piece.length
    const goal = sent
    if (goal < hello.length) await until(() => accepted.bytesRead >= goal)
  }
}

describe('after a peek', () => {
  const splits: [name: string, pieces: (hello: Buffer) => Buffer[]][] = [
    ['whole', (bytes) => [bytes]],
    ['byte by byte', (bytes) => Array.from(bytes, (byte) => Buffer.from([byte]))],
    ...[1, 4, 5, 6, 9, 43, 100, 200].map((at): [string, (bytes: Buffer) => Buffer[]] => [
      `split at ${at}`,
      (all) => [all.subarray(0, at), all.subarray(at)],
    ]),
  ]
  for (const [name, split] of splits) {
    test(`the next reader gets every byte once: ${name}`, async () => {
      const { visitor, accepted } = await pair()
      const result = peeked(accepted)
      await writePieces(visitor, accepted, split(hello))
      assert.equal(((await result) as ClientHello).serverName, 'a.test')
      visitor.end('and more')
      const bytes = (await accepted.toArray()) as Buffer[]
      assert.deepEqual(Buffer.concat(bytes), Buffer.concat([hello, Buffer.from('and more')]))
      accepted.destroy()
    })
  }

  test('what came after the hello is there too, and so is the end', async () => {
    const { visitor, accepted } = await pair()
    const result = peeked(accepted)
    visitor.end(Buffer.concat([hello, Buffer.alloc(50_000, 7)]))
    await result
    const bytes = Buffer.concat((await accepted.toArray()) as Buffer[])
    assert.ok(bytes.equals(Buffer.concat([hello, Buffer.alloc(50_000, 7)])))
    accepted.destroy()
  })

  test('a relay passes every byte on, both ways', async () => {
    const near = await pair()
    const far = await pair()
    const result = peeked(near.accepted)
    near.visitor.write(hello)
    await result
    relay(socketStream(near.accepted), socketStream(far.accepted))
    far.visitor.end('answer')
    near.visitor.end('rest')
    const [there, back] = await Promise.all([far.visitor.toArray(), near.visitor.toArray()])
    assert.ok(Buffer.concat(there as Buffer[]).equals(Buffer.concat([hello, Buffer.from('rest')])))
    assert.equal(Buffer.concat(back as Buffer[]).toString(), 'answer')
  })

  test('TLS completes its handshake, wherever the hello was split', async () => {
    for (let at = 1; at < hello.length; at += at < 60 ? 1 : 37) {
      const arrival = new Promise<Socket>((resolve) => {
        take = (socket) => {
          resolve(socket)
          readClientHello(socket, (result) => {
            assert.equal(typeof result, 'object')
            secure.emit('connection', socket)
          })
        }
      })
      const secured = once(secure, 'secureConnection')
      const visitor = await tlsThrough(async (bytes, raw) => {
        raw.write(bytes.subarray(0, at))
        const accepted = await arrival
        await until(() => accepted.bytesRead >= at)
        raw.write(bytes.subarray(at))
      })
      const [socket] = (await secured) as [Socket]
      socket.end('ok')
      const [answer] = (await once(visitor, 'data')) as [Buffer]
      assert.equal(answer.toString(), 'ok', `split at ${at}`)
      visitor.destroy()
    }
  })

  test('no listener is left behind', async () => {
    const { visitor, accepted } = await pair()
    const counts = () => Object.fromEntries(accepted.eventNames().map((name) => [name, accepted.listenerCount(name)]))
    const untouched = counts()
    const result = peeked(accepted)
    assert.notDeepEqual(counts(), untouched)
    visitor.write(hello)
    await result
    assert.deepEqual(counts(), untouched)
    assert.equal(accepted.readableFlowing, null)
    visitor.destroy()
    accepted.destroy()
  })
})

describe('a visitor without a valid hello', () => {
  const alertOf = (description: number) => Buffer.from([21, 3, 1, 0, 2, 2, description])
  const unnamed = () => heardHello((at) => connect({ port: at, host: '127.0.0.1' }).on('error', () => {}))
  const cases: [
    name: string,
    bytes: () => Buffer | Promise<Buffer>,
    fault: ClientHelloFault,
    answer: Buffer | RegExp,
  ][] = [
    ['no name', unnamed, 'no_name', alertOf(112)],
    ['an impossible name', () => withName('a.te*t'), 'bad_name', alertOf(112)],
    ['a message that is not a hello', () => Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), 'malformed', alertOf(50)],
    ['a hello that is too large', () => Buffer.from([22, 3, 1, 0, 4, 1, 0, 0x80, 0]), 'too_large', alertOf(50)],
    ['HTTP', () => Buffer.from('GET / HTTP/1.1\r\nhost: a.test\r\n\r\n'), 'plain_http', /^HTTP\/1.1 400 .*https:/s],
    ['HTTP with a long body', () => Buffer.from(`POST / HTTP/1.1\r\n\r\n${'x'.repeat(500_000)}`), 'plain_http', /400 /],
    ['nonsense', () => Buffer.from('\0\0\0\0'), 'not_tls', /^$/],
    ['only an end', () => Buffer.alloc(0), 'closed', /^$/],
  ]
  for (const [name, bytes, fault, answer] of cases) {
    test(`${name}: ${fault}`, async () => {
      const sent = await bytes()
      const { visitor, accepted } = await pair()
      const result = peeked(accepted)
      visitor.end(sent)
      assert.equal(await result, fault)
      turnAway(accepted, fault)
      const heard: Buffer[] = []
      visitor.on('data', (chunk: Buffer) => heard.push(chunk))
      await Promise.all([closed(visitor), closed(accepted)])
      if (answer instanceof RegExp) assert.match(Buffer.concat(heard).toString(), answer)
      else assert.deepEqual(Buffer.concat(heard), answer)
    })
  }

  function withName(name: string): Buffer {
    const changed = Buffer.from(hello)
    changed.write(name, hello.indexOf('a.test'), 'latin1')
    return changed
  }

  test('a hello that came while the process was blocked is read, however late it is', async () => {
    const { visitor, accepted } = await pair()
    const result = peeked(accepted, { timeoutMs: 20 })
    visitor.write(hello)
    const until = performance.now() + 60
    while (performance.now() < until);
    assert.equal(((await result) as ClientHello).serverName, 'a.test')
    visitor.destroy()
    accepted.destroy()
  })

  test('that sends byte by byte has no longer than the whole time', async () => {
    const { visitor, accepted } = await pair()
    const result = peeked(accepted, { timeoutMs: 150 })
    let at = 0
    const drip = setInterval(() => visitor.write(hello.subarray(at, ++at)), 10)
    assert.equal(await result, 'timeout')
    clearInterval(drip)
    turnAway(accepted, 'timeout')
    await closed(visitor)
  })

  test('that resets is gone', async () => {
    for (const sent of [0, 1, 100]) {
      const { visitor, accepted } = await pair()
      const result = peeked(accepted)
      visitor.write(hello.subarray(0, sent))
      await until(() => accepted.bytesRead === sent)
      visitor.resetAndDestroy()
      assert.equal(await result, 'closed')
      turnAway(accepted, 'closed')
      await closed(accepted)
    }
  })

  test('that is turned away and does not close is closed', async () => {
    const { visitor, accepted } = await pair()
    visitor.resume()
    turnAway(accepted, 'no_name')
    await closed(accepted)
    visitor.destroy()
  })

  test('that is turned away and resets is not an error', async () => {
    const { visitor, accepted } = await pair()
    turnAway(accepted, 'plain_http')
    visitor.resetAndDestroy()
    await closed(accepted)
  })
})

/** A TLS visitor whose first bytes `send` passes on as it likes; what comes after flows freely. */
async function tlsThrough(send: (hello: Buffer, raw: Socket) => Promise<void>): Promise<Socket> {
  const between = createServer({ noDelay: true }).listen(0, '127.0.0.1')
  await once(between, 'listening')
  const to = { host: '127.0.0.1', port: (between.address() as AddressInfo).port, servername: 'a.test' }
  const visitor = connect({ ...to, ca: made.certPem }).on('error', () => {})
  const [near] = (await once(between, 'connection')) as [Socket]
  between.close()
  const raw = await dialled(port())
  near.on('error', () => {})
  raw.pipe(near)
  const [first] = (await once(near, 'data')) as [Buffer]
  await send(first, raw)
  near.pipe(raw)
  return visitor
}
