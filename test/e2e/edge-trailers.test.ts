/** Trailers in both directions: a removed header does not come back as a trailer. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { httpUpstream } from '../support/upstream.ts'
import { type Answer, type Ask, versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

/** RFC 9110 §6.5.1: names of each kind that no recipient may accept from a trailer. */
const unfit = {
  'content-length': '4',
  'transfer-encoding': 'chunked',
  host: 'other.test',
  'max-forwards': '3',
  'if-none-match': '"1"',
  range: 'bytes=0-1',
  expect: '100-continue',
  authorization: 'Basic eDp5',
  cookie: 'a=b',
  'set-cookie': 'a=b',
  'www-authenticate': 'Basic',
  'cache-control': 'no-store',
  location: 'https://other.test/',
  vary: '*',
  'content-type': 'text/html',
  'content-encoding': 'gzip',
  'user-agent': 'other',
  'x-forwarded-for': '9.9.9.9',
  'x-forwarded-proto': 'https',
  'x-forwarded-port': '1',
  'x-real-ip': '9.9.9.9',
  forwarded: 'for=9.9.9.9',
  'postern-auth-user-id': 'admin',
  'Postern-Error-Code': 'FORGED',
  'proxy-authorization': 'Basic eDp5',
  te: 'trailers',
}

/** HTTP/2 has no place for these, and Node's client sends none of them. */
const onlyHttp1 = ['content-length', 'transfer-encoding', 'host', 'te', 'expect']

let world: World
let edge: HttpsEdge
/** The raw trailers that the service is to answer with, and those of the last request that reached it. */
let answering: readonly string[] = []
let reached: NodeJS.Dict<string> = {}

before(async () => {
  world = await World.start()
  const service = await httpUpstream(world, (request, response) => {
    request.resume()
    request.on('end', () => {
      reached = request.trailers
      const { socket } = response
      if (answering.length === 0) {
        response.end('ok')
        return
      }
      const interim = 'HTTP/1.1 103 Early Hints\r\nX-Internal: early\r\nLink: </a>; rel=preload\r\n\r\n'
      const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-named, close\r\n\r\n'
      socket?.end(`${interim}${head}2\r\nok\r\n0\r\n${answering.join('')}\r\n`)
    })
  })
  edge = await world.httpsTo(service, {
    request_headers: { remove: ['X-Secret'] },
    response_headers: { remove: ['X-Internal'] },
  })
})
after(() => world.stop())

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    const heard = async (...lines: string[]): Promise<Answer> => {
      answering = lines.map((line) => `${line}\r\n`)
      const answer = await world.ask(edge.name, { version })
      assert.equal(answer.text, 'ok')
      // Without the symbol that Node adds.
      return { ...answer, trailers: Object.fromEntries(Object.entries(answer.trailers)) }
    }
    const post = async (trailers: Readonly<Record<string, string>>, more: Ask = {}): Promise<NodeJS.Dict<string>> => {
      answering = []
      const { text } = await world.ask(edge.name, { version, method: 'POST', body: 'x', trailers, ...more })
      assert.equal(text, 'ok')
      return reached
    }

    test('a request header that is removed does not reach the service as a trailer', async () => {
      assert.deepEqual(await post({ 'X-Secret': '1', 'x-sum': '2' }), { 'x-sum': '2' })
    })

    test('a response header that is removed does not reach the visitor as a trailer, nor in an interim answer', async () => {
      const { trailers, interim } = await heard('X-Internal: 1', 'X-Sum: 2')
      assert.deepEqual(trailers, { 'x-sum': '2' })
      assert.deepEqual(
        interim.map(({ status, headers }) => [status, headers.link, headers['x-internal']]),
        [[103, '</a>; rel=preload', undefined]],
      )
    })

    test('names for framing, routing, authentication or identity are dropped from request trailers', async () => {
      const all = Object.entries(unfit).filter(([name]) => version === '1.1' || !onlyHttp1.includes(name))
      assert.deepEqual(await post({ ...Object.fromEntries(all), 'x-sum': '2' }), { 'x-sum': '2' })
    })

    test('the same names are dropped from response trailers', async () => {
      const { trailers } = await heard(...Object.entries(unfit).map((pair) => pair.join(': ')), 'X-Sum: 2')
      assert.deepEqual(trailers, { 'x-sum': '2' })
    })

    test('a name that `Connection` lists is dropped from response trailers', async () => {
      const { trailers } = await heard('X-Named: 1', 'X-Sum: 2')
      assert.deepEqual(trailers, { 'x-sum': '2' })
    })

    if (version === '1.1') {
      test('a name that `Connection` lists is dropped from request trailers', async () => {
        const headers = { connection: 'keep-alive, x-named', 'x-named': 'a' }
        assert.deepEqual(await post({ 'X-Named': '1', 'x-sum': '2' }, { headers }), { 'x-sum': '2' })
      })
    }
  })
}
