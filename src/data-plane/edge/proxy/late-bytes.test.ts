/** Services that send more than they should: no other visitor gets it. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { until } from '../../../../test/support/until.ts'
import { ask } from '../testing/http-visitor.ts'
import { edgeOf, Plane, rawService, type Service } from '../testing/test-http-plane.ts'

type Context = Parameters<typeof rawService>[0]

/** What the next visitor must never get. */
const late = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale'

/**
 * Answers `/first` with `first`, and sends `surplus` when the next request comes on the same connection: before the answer
 * to that one, which is what it looks like when the surplus is late. Every other request is answered with `mine`.
 */
function lateService(t: Context, { first, surplus }: { first: string; surplus: string }): Promise<Service> {
  return rawService(t, (socket) => {
    let isFirst = false
    onRequest(socket, (target) => {
      const before = isFirst ? surplus : ''
      isFirst = target === '/first'
      socket.write(before + (isFirst ? first : 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine'))
    })
  })
}

/** Requests without bodies, each by its target. */
function onRequest(socket: Socket, take: (target: string) => void): void {
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    for (let at = text.indexOf('\r\n\r\n'); at >= 0; at = text.indexOf('\r\n\r\n')) {
      const target = text.split(' ')[1] ?? ''
      text = text.slice(at + 4)
      take(target)
    }
  })
  socket.on('end', () => socket.end())
}

describe('a late body that was announced but not allowed does not reach the next visitor', () => {
  const firsts: Record<string, { method?: string; first: string; dials: number }> = {
    'after a HEAD with a length': { method: 'HEAD', first: '200 OK\r\nContent-Length: 45', dials: 2 },
    'after a HEAD in chunks': { method: 'HEAD', first: '200 OK\r\nTransfer-Encoding: chunked', dials: 2 },
    'after a HEAD without a length': { method: 'HEAD', first: '200 OK', dials: 2 },
    'after a 304 with a length': { first: '304 Not Modified\r\nContent-Length: 45', dials: 2 },
    'after a 304 in chunks': { first: '304 Not Modified\r\nTransfer-Encoding: chunked', dials: 2 },
    'after a 204 with a length': { first: '204 No Content\r\nContent-Length: 45', dials: 2 },
  }
  for (const [name, { method = 'GET', first, dials }] of Object.entries(firsts)) {
    test(name, async (t) => {
      const service = await lateService(t, { first: `HTTP/1.1 ${first}\r\n\r\n`, surplus: late })
      const plane = await Plane.start(t, [edgeOf(service)])
      assert.equal((await ask(t, plane, '1.1', { method, path: '/first' })).status, Number(first.slice(0, 3)))
      for (const next of ['GET', 'POST', 'HEAD']) {
        const { status, text } = await ask(t, plane, '1.1', { method: next })
        assert.deepEqual([next, status, text], [next, 200, next === 'HEAD' ? '' : 'mine'])
      }
      assert.ok(service.dials >= dials)
    })
  }
})

describe('an answer that announces no body leaves its connection to the next visitor', () => {
  const firsts: Record<string, { method?: string; first: string }> = {
    'a HEAD of length 0': { method: 'HEAD', first: '200 OK\r\nContent-Length: 0' },
    'a 304': { first: '304 Not Modified' },
    'a 204': { first: '204 No Content' },
  }
  for (const [name, { method = 'GET', first }] of Object.entries(firsts)) {
    test(name, async (t) => {
      const service = await lateService(t, { first: `HTTP/1.1 ${first}\r\n\r\n`, surplus: '' })
      const plane = await Plane.start(t, [edgeOf(service)])
      await ask(t, plane, '1.1', { method, path: '/first' })
      assert.equal((await ask(t, plane, '1.1')).text, 'mine')
      assert.equal(service.dials, 1)
    })
  }
})

describe('bytes that are not an answer, right after a kept connection was taken', () => {
  const first = 'HTTP/1.1 204 No Content\r\n\r\n'
  const surplus = '<h1>nothing to see</h1>'

  test('do not affect the next visitor when its request may be sent again', async (t) => {
    const service = await lateService(t, { first, surplus })
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1', { path: '/first' })
    const { status, text } = await ask(t, plane, '1.1')
    assert.deepEqual([status, text, service.dials], [200, 'mine', 2])
  })

  test('are an error of the service, and nothing more, when it may not', async (t) => {
    const service = await lateService(t, { first, surplus })
    const plane = await Plane.start(t, [edgeOf(service)])
    await ask(t, plane, '1.1', { path: '/first' })
    const { status, headers, text } = await ask(t, plane, '1.1', { method: 'POST' })
    assert.deepEqual([status, headers['postern-error-code'], service.dials], [502, 'ERR_UPSTREAM_INVALID', 1])
    assert.doesNotMatch(text, /nothing to see/)
  })
})

test('bytes that come while a connection is kept end it', async (t) => {
  const surpluses = [late, 'HTTP/1.1 103 Early Hints\r\n\r\n', 'x']
  for (const surplus of surpluses) {
    const service = await rawService(t, (socket) =>
      onRequest(socket, () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine')),
    )
    const plane = await Plane.start(t, [edgeOf(service)])
    assert.equal((await ask(t, plane, '1.1')).text, 'mine')
    assert.equal(plane.pool.size, 1)
    for (const socket of service.sockets) socket.write(surplus)
    await until('the connection is closed', () => plane.pool.size === 0)
    assert.equal((await ask(t, plane, '1.1')).text, 'mine')
    assert.equal(service.dials, 2)
  }
})
