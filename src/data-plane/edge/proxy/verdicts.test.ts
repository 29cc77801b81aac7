/** The effects of module verdicts on requests and on answers: an answer replaced, refused, or none at all. */
import assert from 'node:assert/strict'
import { request as plainRequest } from 'node:http'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type Phases, type ResponseVerdict, Slot } from '../../../modules/phases.ts'
import { ask, versions } from '../testing/http-visitor.ts'
import { httpService, Plane, testEdge } from '../testing/test-http-plane.ts'

type Response = NonNullable<Phases['response']>

const tea = { respond: { status: 418, headers: [['x-tea', 'green']] as const, body: 'tea' } }

const adding =
  (name: string): Response =>
  ({ headers }) => {
    headers.add(name, 'yes')
    return undefined
  }

/** At once, and after a while. */
const ways: Readonly<Record<string, (verdict: ResponseVerdict) => Response>> = {
  'at once': (verdict) => () => verdict,
  later: (verdict) => async () => {
    await setImmediate()
    return verdict
  },
}

for (const version of versions) {
  for (const [way, give] of Object.entries(ways)) {
    describe(`over HTTP/${version}, a verdict on an answer, ${way}`, () => {
      test('replaces it, and the modules further out see the new one', async (t) => {
        const service = await httpService(t, (_request, response) => response.end('x'.repeat(3_000_000)))
        const seen: unknown[] = []
        const outer: Response = ({ status, headers, isFromUpstream, bodyLength }) => {
          seen.push([status, isFromUpstream, bodyLength])
          headers.add('x-outer', 'yes')
        }
        const inner = adding('x-inner')
        const routes = [{ backend: service.backend, response: [inner, give(tea), outer] }]
        const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
        for (let i = 0; i < 3; i++) {
          const { status, text, headers } = await ask(t, plane, version)
          assert.deepEqual([status, text, headers['x-tea']], [418, 'tea', 'green'])
          assert.deepEqual([headers['x-outer'], headers['x-inner'], headers['content-length']], ['yes', undefined, '3'])
        }
        assert.deepEqual(seen, Array(3).fill([418, false, 3]))
      })

      test('may refuse it: the page bypasses all modules', async (t) => {
        const service = await httpService(t, (_request, response) => response.end('secret'))
        const outer = adding('x-outer')
        const routes = [{ backend: service.backend, response: [give({ refuse: 'IP_REFUSED' }), outer] }]
        const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
        const { status, text, headers } = await ask(t, plane, version)
        assert.deepEqual(
          [status, headers['postern-error-code'], headers['x-outer']],
          [403, 'ERR_IP_REFUSED', undefined],
        )
        assert.doesNotMatch(text, /secret/)
      })

      test('may end the connection: no byte of the answer is sent', async (t) => {
        const service = await httpService(t, (_request, response) => response.end('secret'))
        const routes = [{ backend: service.backend, response: [give({ close: true })] }]
        const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
        await assert.rejects(ask(t, plane, version))
      })

      test('on an answer that a module made', async (t) => {
        const routes = [{ request: [() => tea], response: [give({ respond: { ...tea.respond, body: 'coffee' } })] }]
        const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
        assert.equal((await ask(t, plane, version)).text, 'coffee')
      })
    })
  }

  describe(`over HTTP/${version}`, () => {
    test('a request may end its connection without an answer, and does not reach the service', async (t) => {
      let asked = 0
      const service = await httpService(t, (_request, response) => response.end(String(++asked)))
      const routes = [{ backend: service.backend, request: [() => ({ close: true }) as const] }]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      await assert.rejects(ask(t, plane, version))
      assert.equal(asked, 0)
    })

    test('a module that fails while it examines an answer lets nothing of it through', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('secret'))
      const broken: Response = async () => {
        await setImmediate()
        throw new Error('broken')
      }
      const routes = [{ backend: service.backend, response: [broken] }]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      const { status, text } = await ask(t, plane, version)
      assert.equal(status, 500)
      assert.doesNotMatch(text, /secret/)
    })

    test('what a module stores with a request is there in its later phases, and not in the next request', async (t) => {
      const service = await httpService(t, (_request, response) => response.end('hi'))
      const slot = new Slot<{ readonly path: string }>()
      const found: (string | undefined)[] = []
      const routes = [
        {
          backend: service.backend,
          request: [
            (ctx: Parameters<NonNullable<Phases['request']>>[0]) => {
              found.push(slot.of(ctx)?.path)
              slot.set(ctx, { path: ctx.target })
              return undefined
            },
          ],
          response: [((_incoming, ctx) => void found.push(slot.of(ctx)?.path)) satisfies Response],
        },
      ]
      const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes })])
      for (const path of ['/a', '/b']) await ask(t, plane, version, { path })
      assert.deepEqual(found, [undefined, '/a', undefined, '/b'])
    })
  })
}

test('a connection that a module closes instead of the answer is recorded with the time it took', async (t) => {
  const service = await httpService(t, (_request, response) => response.end('hi'))
  const close: Response = () => ({ close: true })
  const routes = [{ backend: service.backend, response: [close] }]
  const plane = await Plane.start(t, [testEdge({ kind: 'http', names: ['a.test'], routes })])
  const visitor = plainRequest({ port: plane.httpPort, host: '127.0.0.1', headers: { host: 'a.test' }, agent: false })
  const closed = new Promise((resolve) => visitor.on('close', resolve))
  visitor.on('error', () => {}).end()
  await closed
  const [record] = await plane.recorded(1)
  assert.ok(record && record.durationMs >= 0 && record.answeredMs === -1)
})

test('a visitor that leaves while a module examines the answer leaves nothing behind', async (t) => {
  const service = await httpService(t, (_request, response) => response.end('x'.repeat(3_000_000)))
  const looking = Promise.withResolvers<void>()
  const done = Promise.withResolvers<number>()
  const response: Response = async () => {
    looking.resolve()
    await done.promise
    return tea
  }
  const routes = [
    {
      backend: service.backend,
      response: [response],
      done: [({ status }: { status: number }) => done.resolve(status)],
    },
  ]
  const plane = await Plane.start(t, [testEdge({ kind: 'http', names: ['a.test'], routes })])
  const visitor = plainRequest({ port: plane.httpPort, host: '127.0.0.1', headers: { host: 'a.test' }, agent: false })
  visitor.on('error', () => {}).end()
  await looking.promise
  const left = new Promise((resolve) => visitor.on('close', resolve))
  visitor.destroy()
  await left
  assert.equal(await done.promise, 0)
})
