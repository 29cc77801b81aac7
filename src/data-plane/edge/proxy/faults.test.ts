import assert from 'node:assert/strict'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import type { RequestContext } from '../../../modules/phases.ts'
import { ask, beginPlain, cut, open, openHttp2, versions } from '../testing/http-visitor.ts'
import { edgeOf, httpService, Plane, plainEdgeOf, rawService, testEdge } from '../testing/test-http-plane.ts'

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    test('a visitor who leaves cancels the request to the service', async (t) => {
      const gone = Promise.withResolvers<void>()
      const arrived = Promise.withResolvers<void>()
      const service = await httpService(t, (request, response) => {
        if (request.url === '/body') response.write('some')
        response.on('close', () => gone.resolve())
        arrived.resolve()
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      if (version === '1.1') {
        const asking = beginPlain(plane, 'GET')
        asking.end()
        await arrived.promise
        cut(asking)
      } else {
        const stream = openHttp2(t, plane).request({ ':authority': 'a.test' })
        stream.on('error', () => {})
        await arrived.promise
        stream.close(constants.NGHTTP2_CANCEL)
      }
      await gone.promise
      const { isCut, status } = await plane.record()
      assert.deepEqual([isCut, status], [true, 0])
    })

    test('a visitor who leaves in the middle of the answer, or of the request, does so too', async (t) => {
      let closes = 0
      const closed = Promise.withResolvers<void>()
      const service = await httpService(t, (request, response) => {
        request.on('error', () => {}).resume()
        response.write('some')
        response.on('close', () => {
          if (++closes === 2) closed.resolve()
        })
      })
      const plane = await Plane.start(t, [edgeOf(service), plainEdgeOf(service)])
      const { close } = await open(t, plane, version)
      close()
      const posting = await open(t, plane, version, { method: 'POST', isLeftOpen: true })
      posting.close()
      await closed.promise
      const records = await plane.recorded(2)
      assert.deepEqual(
        records.map(({ isCut, status }) => [isCut, status]),
        [
          [true, 200],
          [true, 200],
        ],
      )
    })

    const hopeless: Record<string, [serve: (socket: Socket) => void, status: number, code: string]> = {
      'closes at once': [(socket) => socket.end(), 502, 'UPSTREAM_UNREACHABLE'],
      'resets at once': [(socket) => socket.resetAndDestroy(), 502, 'UPSTREAM_UNREACHABLE'],
      'speaks something else': [(socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), 502, 'UPSTREAM_INVALID'],
      'closes within its head': [(socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'), 502, 'UPSTREAM_UNREACHABLE'],
      'has a head without end': [
        (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`),
        502,
        'UPSTREAM_INVALID',
      ],
      'contradicts itself': [
        (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
        502,
        'UPSTREAM_INVALID',
      ],
      'switches to a protocol that was not requested': [
        (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
        502,
        'UPSTREAM_INVALID',
      ],
    }
    for (const [name, [serve, status, code]] of Object.entries(hopeless)) {
      test(`a service that ${name} is a fault of the service`, async (t) => {
        const service = await rawService(t, (socket) => {
          socket.on('error', () => {}).once('data', () => serve(socket))
        })
        const plane = await Plane.start(t, [edgeOf(service)])
        const answer = await ask(t, plane, version)
        assert.deepEqual([answer.status, answer.headers['postern-error-code']], [status, `ERR_${code}`])
      })
    }

    test('a service that ends in the middle of its body cuts the answer', async (t) => {
      const halves = {
        '/length': 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf',
        '/chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
        '/garbage': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzzz\r\n',
      }
      const service = await rawService(t, (socket) => {
        socket
          .on('error', () => {})
          .once('data', (head: Buffer) => {
            const [, path = ''] = head.toString().split(' ')
            socket.end(halves[path as keyof typeof halves]) // one of those just above
          })
      })
      const plane = await Plane.start(t, [edgeOf(service)])
      for (const path of Object.keys(halves)) await assert.rejects(ask(t, plane, version, { path }), path)
      for (const { isCut, status } of await plane.recorded(3)) assert.deepEqual([isCut, status], [true, 200])
    })

    test('a request that is idle for too long ends: before the answer with a page, later with a cut', async (t) => {
      const service = await httpService(t, (request, response) => {
        if (request.url === '/half') response.write('half')
      })
      const plane = await Plane.start(t, [edgeOf(service)], { idleMs: 500 })
      const none = await ask(t, plane, version)
      assert.deepEqual([none.status, none.headers['postern-error-code']], [504, 'ERR_UPSTREAM_TIMEOUT'])
      await assert.rejects(ask(t, plane, version, { path: '/half' }))
      await Promise.all([...service.sockets].map((socket) => once(socket, 'close')))
    })

    test('an upload that its service does not take ends sooner than other requests', async (t) => {
      const answers: (() => void)[] = []
      const slow = await httpService(t, (_, response) => void answers.push(() => response.end('slow')))
      const stuck = await rawService(t, (socket) => void socket.on('error', () => {}).pause())
      const routes = [
        { match: '/slow', backend: slow.backend },
        { match: '/stuck', backend: stuck.backend },
      ]
      const edges = (['https', 'http'] as const).map((kind) => testEdge({ names: ['a.test'], kind, routes }))
      const plane = await Plane.start(t, edges, { idleMs: 60_000, uploadMs: 300 })
      const waiting = [
        ask(t, plane, version, { path: '/slow' }),
        open(t, plane, version, { method: 'POST', path: '/slow', isLeftOpen: true }),
      ] as const
      const stalled = await open(t, plane, version, {
        method: 'POST',
        path: '/stuck',
        body: Buffer.alloc(16 * 1024 * 1024),
      })
      assert.deepEqual([stalled.response.status, stalled.response['postern-error-code']], [504, 'ERR_UPSTREAM_TIMEOUT'])
      stalled.close()
      await until('the others are asked', () => answers.length === 2)
      for (const answer of answers) answer()
      assert.equal((await waiting[0]).status, 200)
      const half = await waiting[1]
      assert.equal(half.response.status, 200)
      half.close()
    })
  })
}

describe('a module that waits', () => {
  test('for a body that is malformed from its first byte leaves no deadline', async (t) => {
    const request = [
      async (ctx: RequestContext) => {
        await ctx.readBody(1000)
        return undefined
      },
    ]
    const edge = testEdge({ names: ['a.test'], kind: 'http', routes: [{ match: '/', request }] })
    const plane = await Plane.start(t, [edge])
    const added = t.mock.method(plane.sweep, 'add')
    const removed = t.mock.method(plane.sweep, 'remove')
    const socket = connect(plane.httpPort, '127.0.0.1')
    const head = 'POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n'
    socket.write(`${head}no chunk\r\n`)
    socket.resume()
    await plane.record()
    socket.end()
    await once(socket, 'close')
    const left = () => {
      const gone = new Set(removed.mock.calls.map(({ arguments: [deadline] }) => deadline))
      return added.mock.calls.filter(({ result }) => result && !gone.has(result)).length
    }
    // The server's end of the connection closes a moment later.
    while (plane.connections.size > 0) await new Promise((resolve) => setImmediate(resolve))
    assert.ok(added.mock.callCount() > 0)
    assert.equal(left(), 0)
  })

  for (const version of versions) {
    test(`for a body that does not come, over HTTP/${version}, does not wait forever`, async (t) => {
      const late: string[] = []
      const routes = [
        {
          match: '/body',
          request: [
            async (ctx: RequestContext) => {
              await ctx.readBody(1000).catch(() => late.push('given up'))
              return undefined
            },
          ],
        },
        { match: '/never', request: [() => new Promise<undefined>(() => {})] },
      ]
      const edges = (['https', 'http'] as const).map((kind) => testEdge({ names: ['a.test'], kind, routes }))
      const plane = await Plane.start(t, edges, { idleMs: 500 })
      const { response, close } = await open(t, plane, version, { method: 'POST', path: '/body', isLeftOpen: true })
      assert.deepEqual([response.status, response['postern-error-code']], [408, 'ERR_REQUEST_BODY_TIMEOUT'])
      await plane.record()
      close()
      const never = await ask(t, plane, version, { path: '/never' })
      assert.deepEqual([never.status, never.headers['postern-error-code']], [500, 'ERR_BROKEN_MODULE'])
      assert.deepEqual(late, ['given up'])
    })
  }
})
