/** Visitors that keep cancelling requests, on a connection to the service that others share. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { ask, openHttp2 } from '../testing/http-visitor.ts'
import { http2Service, Plane, testEdge } from '../testing/test-http-plane.ts'

/** Services that count resets, as Node's own do, end the connection after some 1000 in a row. */
const RESETS = 3000
const AT_A_TIME = 50

for (const [what, isWhole] of [
  ['whole', true],
  ['half sent', false],
] as const) {
  test(`cancelling thousands of requests, ${what}, costs no other visitor an answer`, async (t) => {
    const service = await http2Service(t, (stream, headers) => {
      if (headers[':path'] === '/never') return
      stream.resume()
      stream.on('end', () => {
        stream.respond({ ':status': 200 })
        stream.end('hi')
      })
    })
    const plane = await Plane.start(t, [testEdge({ names: ['a.test'], routes: [{ backend: service.backend }] })])
    const statuses = new Map<number, number>()
    for (let reset = 0; reset < RESETS; reset += AT_A_TIME) {
      // A new visitor each time: we end the connection of one that does this for long.
      const hostile = openHttp2(t, plane)
      const streams = Array.from({ length: AT_A_TIME }, () =>
        hostile.request({ ':method': 'POST', ':path': '/never', ':authority': 'a.test' }, { endStream: isWhole }),
      )
      for (const stream of streams) stream.on('error', () => {})
      // A request sent after them arrives after them.
      const { status } = await ask(t, plane, '2', { method: 'POST', body: 'x' })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      for (const stream of streams) stream.close(8)
      for (const stream of streams) if (!stream.destroyed) await once(stream, 'close')
      hostile.destroy()
    }
    assert.deepEqual([...statuses], [[200, RESETS / AT_A_TIME]])
  })
}
