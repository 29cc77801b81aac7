import assert from 'node:assert/strict'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { Sweep } from '../deadlines.ts'
import { errorPages } from '../pages/error-page.ts'
import { Http2Connection } from './server-connection.ts'
import { extended, flags, RawVisitor, usual } from './testing/test-frames.ts'
import { answer, client, head, serve } from './testing/test-server.ts'

describe('an invalid request', () => {
  const without = (...names: string[]) => usual.filter(([name]) => !names.includes(name))
  const cases: Record<string, [pairs: readonly (readonly [string, string])[], answer: string]> = {
    'a usual one is valid': [usual, '200'],
    'one with only Host is valid': [[...without(':authority'), ['host', 'a.test']], '200'],
    'one with the same name in both is valid': [[...usual, ['host', 'A.TEST']], '200'],
    'another Host than :authority': [[...usual, ['host', 'b.test']], '400'],
    'neither Host nor :authority': [without(':authority'), 'reset 1'],
    'an empty :authority': [[...without(':authority'), [':authority', '']], 'reset 1'],
    CONNECT: [
      [
        [':method', 'CONNECT'],
        [':authority', 'a.test:80'],
      ],
      '400',
    ],
    'an extended CONNECT for a WebSocket is valid': [extended, '200'],
    'one for another protocol': [[...extended.slice(0, -1), [':protocol', 'connect-udp']], '400'],
    'one without a path': [extended.filter(([name]) => name !== ':path'), 'reset 1'],
    'a GET with :protocol': [[...usual, [':protocol', 'websocket']], 'reset 1'],
    'another scheme': [[...without(':scheme'), [':scheme', 'ftp']], '400'],
    'a target that is a URL': [[...without(':path', ':scheme'), [':scheme', 'ftp'], [':path', 'ftp://x/']], '400'],
    'a target without slash': [[...without(':path'), [':path', 'x']], 'reset 1'],
    'a target that is not ASCII': [[...without(':path'), [':path', '/?\xe9']], '400'],
    'a target with a space': [[...without(':path'), [':path', '/a b']], 'reset 1'],
    'a GET of *': [[...without(':path'), [':path', '*']], 'reset 1'],
    'no method': [without(':method'), 'reset 1'],
    'two methods': [[[':method', 'GET'], ...usual], 'reset 1'],
    'a pseudo header after others': [[...without(':path'), ['a', 'b'], [':path', '/']], 'reset 1'],
    'an unknown pseudo header': [[[':x', '1'], ...usual], 'reset 1'],
    'capitals in a name': [[...usual, ['X-Capital', '1']], 'reset 1'],
    Connection: [[...usual, ['connection', 'close']], 'reset 1'],
    'Transfer-Encoding': [[...usual, ['transfer-encoding', 'chunked']], 'reset 1'],
    Upgrade: [[...usual, ['upgrade', 'websocket']], 'reset 1'],
    'Keep-Alive': [[...usual, ['keep-alive', '1']], 'reset 1'],
    'Proxy-Connection': [[...usual, ['proxy-connection', '1']], 'reset 1'],
    'TE of something else': [[...usual, ['te', 'gzip']], 'reset 1'],
    'two lengths': [[...usual, ['content-length', '0'], ['content-length', '1']], 'reset 1'],
    'an invalid length': [[...usual, ['content-length', 'x']], 'reset 1'],
  }
  for (const [name, [pairs, expected]] of Object.entries(cases)) {
    test(name, async (t) => {
      const harness = await serve(t)
      const visitor = await RawVisitor.connect(harness.port)
      visitor.ask(1, pairs)
      assert.equal(await visitor.answer(1), expected)
      assert.equal(harness.exchanges.length, expected === '200' ? 1 : 0)
      visitor.socket.destroy()
    })
  }

  test('an invalid header is dropped, and the others are kept', async (t) => {
    const harness = await serve(t)
    const visitor = await RawVisitor.connect(harness.port)
    const bad = [
      ['x y', '1'],
      ['x', '1\r\ny: 2'],
      ['z', 'a\0b'],
      ['', '1'],
      ['v', ' 1'],
      ['w', '1 '],
    ] as const
    visitor.ask(1, [...usual, ...bad, ['good', '1']])
    assert.equal(await visitor.answer(1), '200')
    assert.deepEqual([...(harness.exchanges[0]?.head.headers ?? [])], [['good', '1']])
    visitor.socket.destroy()
  })

  test('a body that is longer or shorter than announced', async (t) => {
    for (const body of ['', 'abc']) {
      const failed = Promise.withResolvers<string>()
      const harness = await serve(t, (exchange) =>
        exchange.body.read({ data() {}, end: () => failed.resolve('whole'), failed: () => failed.resolve('cut') }),
      )
      const visitor = await RawVisitor.connect(harness.port)
      visitor.ask(1, [...usual, ['content-length', '2']], { isOpen: true })
      visitor.send('data', flags.endStream, 1, Buffer.from(body))
      assert.equal(await failed.promise, 'cut')
      visitor.socket.destroy()
    }
  })
})

describe('a head', () => {
  test('is read with joined cookies and a separate length', async (t) => {
    const harness = await serve(t)
    const visitor = await RawVisitor.connect(harness.port)
    const pairs = [
      ['cookie', 'a=1'],
      ['x', '1'],
      ['cookie', 'b=2'],
      ['x', '2'],
      ['content-length', '3'],
    ] as const
    visitor.ask(1, [...usual, ...pairs], { isOpen: true })
    assert.equal(await visitor.answer(1), '200')
    const [exchange] = harness.exchanges
    assert.ok(exchange)
    const { headers, ...rest } = exchange.head
    assert.deepEqual(rest, {
      method: 'GET',
      target: '/',
      authority: 'a.test',
      version: '2',
      body: 3,
      upgrade: undefined,
    })
    assert.deepEqual(
      [...headers],
      [
        ['x', '1'],
        ['x', '2'],
        ['cookie', 'a=1; b=2'],
      ],
    )
    visitor.socket.destroy()
  })

  test('of too many or too large headers is refused, and the connection stays open', async (t) => {
    const harness = await serve(t)
    const session = client(t, harness.port)
    const ask = async (headers: Record<string, string>): Promise<string> => {
      const stream = session.request({ ':path': '/', ...headers })
      const answered = Promise.withResolvers<string>()
      stream.on('response', (given) => answered.resolve(String(given[':status'])))
      stream.on('error', (error: NodeJS.ErrnoException) => answered.resolve(error.message))
      stream.resume()
      return answered.promise
    }
    assert.equal(await ask(Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`x-${i}`, '1']))), '200')
    assert.match(
      await ask(Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, '1']))),
      /REFUSED_STREAM|ENHANCE_YOUR_CALM/,
    )
    assert.match(
      await ask(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`x-${i}`, 'x'.repeat(8000)]))),
      /REFUSED_STREAM|ENHANCE_YOUR_CALM/,
    )
    assert.equal(await ask({}), '200')
    assert.equal(harness.exchanges.length, 2)
  })
})

describe('an answer', () => {
  test('has its headers, its interim answers and its trailers', async (t) => {
    const harness = await serve(t, (exchange) => {
      exchange.inform(
        103,
        HeaderList.of([
          ['Link', '<a>'],
          ['Link', '<b>'],
        ]),
      )
      exchange.inform(100, new HeaderList())
      const writer = exchange.respond(
        head(200, 'unknown', [
          ['Set-Cookie', 'a'],
          ['Set-Cookie', 'b'],
          ['Connection', 'close'],
        ]),
      )
      writer.write(Buffer.from('hi'))
      writer.end(
        HeaderList.of([
          ['Grpc-Status', '0'],
          ['X', '1'],
          ['X', '2'],
          ['Bad', 'a\r\nb'],
        ]),
      )
    })
    const stream = client(t, harness.port).request()
    const informed: unknown[] = []
    stream.on('headers', ({ ':status': status, link }) => informed.push([status, link]))
    const trailers = once(stream, 'trailers')
    const [given] = (await once(stream, 'response')) as [Record<string, unknown>]
    assert.deepEqual(given['set-cookie'], ['a', 'b'])
    assert.equal(given.connection, undefined)
    assert.equal((await buffer(stream)).toString(), 'hi')
    const [last] = (await trailers) as [object]
    assert.deepEqual(Object.entries(last), [
      ['grpc-status', '0'],
      ['x', '1, 2'],
    ])
    assert.deepEqual(informed, [[103, '<a>, <b>']])
  })

  test('is sent only once, and never with what cannot be sent', async (t) => {
    const faults: string[] = []
    const attempt = (call: () => unknown): void => {
      try {
        call()
      } catch (error) {
        faults.push(error instanceof Error ? error.message : '')
      }
    }
    const harness = await serve(t, (exchange) => {
      attempt(() => exchange.respond(head(200, 0, [['x', 'a\r\nb: c']])))
      attempt(() => exchange.respond(head(200, 0, [['x y', 'a']])))
      attempt(() => exchange.respond(head(101, 0)))
      attempt(() => exchange.inform(200, new HeaderList()))
      attempt(() => exchange.upgrade(head(101, 'none')))
      exchange.respond(head(999, 0)).end()
      attempt(() => exchange.respond(head(200, 0)))
    })
    const [given] = (await once(client(t, harness.port).request(), 'response')) as [Record<string, unknown>]
    assert.equal(given[':status'], 500)
    assert.equal(faults.length, 6)
  })

  test('that is aborted is visibly cut', async (t) => {
    const harness = await serve(t, (exchange) => {
      const writer = exchange.respond(head(200, 'unknown'))
      writer.write(Buffer.from('half'))
      writer.abort()
    })
    await assert.rejects(buffer(client(t, harness.port).request()), /INTERNAL_ERROR/)
  })

  test('to a visitor who is gone is dropped', async (t) => {
    const aborted = Promise.withResolvers<void>()
    const harness = await serve(t, (exchange) => {
      exchange.onAbort = () => {
        exchange.inform(103, new HeaderList())
        const writer = exchange.respond(head(200, 'unknown'))
        assert.equal(writer.write(Buffer.from('late')), true)
        writer.end()
        aborted.resolve()
      }
    })
    const visitor = await RawVisitor.connect(harness.port)
    visitor.ask(1)
    visitor.reset(1, 8)
    await aborted.promise
    assert.deepEqual(harness.broken, [])
    visitor.socket.destroy()
  })

  test('from a handler that throws fails only that request', async (t) => {
    const harness = await serve(t, (exchange) => {
      if (exchange.head.target === '/bad') throw new Error('no')
      answer(exchange)
    })
    const session = client(t, harness.port)
    await assert.rejects(once(session.request({ ':path': '/bad' }), 'response'), /INTERNAL_ERROR/)
    assert.equal((await buffer(session.request({ ':path': '/good' }))).toString(), 'ok')
    assert.equal(harness.broken.length, 1)
  })
})

describe('a visitor that resets its upload', () => {
  for (const code of [0, 2, 8]) {
    test(`with code ${code} does not make half of it look complete`, async (t) => {
      const seen: string[] = []
      const over = Promise.withResolvers<void>()
      const visitors: RawVisitor[] = []
      const harness = await serve(t, (exchange) => {
        exchange.onAbort = () => {
          seen.push('aborted')
          over.resolve()
        }
        exchange.body.read({
          data: (chunk) => {
            seen.push(chunk.toString())
            visitors[0]?.reset(1, code)
          },
          end: () => seen.push('whole'),
          failed: () => seen.push('cut'),
        })
      })
      const visitor = await RawVisitor.connect(harness.port)
      visitors.push(visitor)
      visitor.ask(1, [[':method', 'POST'], ...usual.slice(1)], { isOpen: true })
      visitor.send('data', 0, 1, Buffer.from('half'))
      await over.promise
      assert.deepEqual(seen, ['half', 'cut', 'aborted'])
      visitor.socket.destroy()
    })
  }

  test('while its reader is paused is gone too', async (t) => {
    const over = Promise.withResolvers<void>()
    const got = Promise.withResolvers<void>()
    const harness = await serve(t, (exchange) => {
      exchange.onAbort = over.resolve
      exchange.body.read({
        data: () => {
          exchange.body.pause()
          got.resolve()
        },
        end: () => assert.fail('it is not whole'),
        failed() {},
      })
    })
    const visitor = await RawVisitor.connect(harness.port)
    visitor.ask(1, usual, { isOpen: true })
    for (let i = 0; i < 4; i++) visitor.send('data', 0, 1, Buffer.alloc(10_000))
    await got.promise
    visitor.reset(1, 0)
    await over.promise
    assert.equal(harness.connections[0]?.open, 0)
    visitor.socket.destroy()
  })

  test('by leaving does not make half of it look complete', async (t) => {
    const seen: string[] = []
    const over = Promise.withResolvers<void>()
    const harness = await serve(t, (exchange) => {
      exchange.onAbort = () => over.resolve()
      exchange.body.read({ data() {}, end: () => seen.push('whole'), failed: () => seen.push('cut') })
    })
    const visitor = await RawVisitor.connect(harness.port)
    visitor.ask(1, usual, { isOpen: true })
    while (harness.exchanges.length === 0) await new Promise((resolve) => setImmediate(resolve))
    visitor.socket.end()
    await over.promise
    assert.deepEqual(seen, ['cut'])
    assert.equal(harness.closed, 1)
  })
})

describe('a connection', () => {
  test('that drains finishes its requests and takes no new ones', async (t) => {
    const harness = await serve(t, () => {})
    const session = client(t, harness.port)
    const stream = session.request()
    while (harness.exchanges.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const goaway = once(session, 'goaway')
    harness.connections[0]?.drain()
    await goaway
    const [exchange] = harness.exchanges
    assert.ok(exchange)
    answer(exchange)
    assert.equal((await buffer(stream)).toString(), 'ok')
    if (!session.closed) await once(session, 'close')
    while (harness.closed === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('that drains before its first request waits for that', async (t) => {
    const harness = await serve(t)
    const session = client(t, harness.port)
    await once(session, 'remoteSettings')
    harness.connections[0]?.drain()
    const goaway = once(session, 'goaway')
    assert.equal((await buffer(session.request())).toString(), 'ok')
    await goaway
    while (harness.closed === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('that drains and gets no request is closed', async (t) => {
    const harness = await serve(t)
    const session = client(t, harness.port)
    await once(session, 'remoteSettings')
    const goaway = once(session, 'goaway')
    harness.connections[0]?.drain()
    harness.connections[0]?.drain()
    await goaway
    while (harness.closed === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('that is idle for too long is closed, with a GOAWAY', async (t) => {
    const harness = await serve(t, answer, { limits: { headBytes: 65_536, headers: 100, idleMs: 30 } })
    const session = client(t, harness.port)
    const goodbye = once(session, 'goaway')
    assert.equal((await buffer(session.request())).toString(), 'ok')
    const [code] = (await goodbye) as [number]
    assert.equal(code, 0)
    while (harness.closed === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('whose socket is closed already is over', async (t) => {
    const harness = await serve(t)
    const { socket } = await RawVisitor.connect(harness.port)
    socket.destroy()
    await once(socket, 'close')
    const over = Promise.withResolvers<void>()
    new Http2Connection({
      socket,
      sweep: new Sweep(),
      onExchange: answer,
      onBad: errorPages().plain,
      onClosed: over.resolve,
    })
    await over.promise
  })

  test('on which a request waits for too long is closed as well', async (t) => {
    const aborted = Promise.withResolvers<void>()
    const harness = await serve(
      t,
      (exchange) => {
        exchange.onAbort = aborted.resolve
      },
      { limits: { headBytes: 65_536, headers: 100, idleMs: 30 } },
    )
    client(t, harness.port)
      .request()
      .on('error', () => {})
    await aborted.promise
  })

  test('reports for each exchange that it is done, or that the visitor is gone', async (t) => {
    const reported: string[] = []
    const harness = await serve(t, (exchange) => {
      exchange.onDone = () => reported.push(`done ${exchange.head.target}`)
      exchange.onAbort = () => reported.push(`gone ${exchange.head.target}`)
      if (exchange.head.target !== '/gone') answer(exchange)
    })
    const session = client(t, harness.port)
    await buffer(session.request({ ':path': '/a' }))
    await buffer(session.request({ ':path': '/b', ':method': 'POST' }).end('x'))
    await buffer(session.request({ ':path': '/c', ':method': 'HEAD' }))
    session.request({ ':path': '/gone' }).on('error', () => {})
    while (harness.exchanges.length < 4) await new Promise((resolve) => setImmediate(resolve))
    session.destroy()
    while (reported.length < 4) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(reported, ['done /a', 'done /b', 'done /c', 'gone /gone'])
  })
})

describe('requests that come together', () => {
  test('leave the event loop to others after 32 of them, and all are answered', async (t) => {
    let inTurn = 0
    const perTurn: number[] = []
    const harness = await serve(t, (exchange) => {
      if (inTurn++ === 0)
        setImmediate(() => {
          perTurn.push(inTurn)
          inTurn = 0
        })
      answer(exchange)
    })
    const visitor = await RawVisitor.connect(harness.port)
    await visitor.frame('settings', 0)
    visitor.socket.cork()
    for (let i = 0; i < 100; i++) visitor.ask(2 * i + 1)
    visitor.socket.uncork()
    for (let i = 0; i < 100; i++) assert.equal(await visitor.answer(2 * i + 1), '200')
    assert.equal(harness.exchanges.length, 100)
    assert.ok(Math.max(...perTurn) <= 32, perTurn.join())
    visitor.socket.destroy()
  })

  test('and were reset while they waited are not begun', async (t) => {
    const harness = await serve(t)
    const visitor = await RawVisitor.connect(harness.port)
    await visitor.frame('settings', 0)
    visitor.socket.cork()
    for (let i = 0; i < 100; i++) visitor.ask(2 * i + 1)
    for (let i = 32; i < 100; i++) visitor.reset(2 * i + 1, 8)
    visitor.ask(201)
    visitor.socket.uncork()
    assert.equal(await visitor.answer(201), '200')
    assert.equal(harness.exchanges.length, 33)
    visitor.socket.destroy()
  })
})
