import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { visitorErrors } from '../../model/visitor-errors.ts'
import { type HttpRefusalsOptions, httpRefusals } from './refuse-http.ts'

/** A listener that is over its limit; returns a function that connects to it. */
async function overLimit(t: TestContext, options: HttpRefusalsOptions) {
  const server = createServer({ allowHalfOpen: true }, httpRefusals(options)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo // it listens on a port
  return () => {
    const socket = connect(port, '127.0.0.1')
    t.after(() => socket.destroy())
    return socket
  }
}

const get = 'GET / HTTP/1.1\r\nhost: a.test\r\n\r\n'
const number = `ngrok-error-code: ERR_NGROK_${visitorErrors.SERVER_BUSY.ngrok}`

test("a visitor gets a 503 with our code, and with ngrok's number while that is on", async (t) => {
  let isOn = true
  const dial = await overLimit(t, { ngrokErrorHeader: () => isOn })
  const heard = async () => {
    const socket = dial()
    socket.write(get)
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    const [status, ...headers] = head.split('\r\n')
    assert.equal(status, 'HTTP/1.1 503 Service Unavailable')
    for (const each of ['retry-after: 1', 'connection: close', `content-length: ${body.length}`])
      assert.ok(headers.includes(each), head)
    assert.equal(body, `${visitorErrors.SERVER_BUSY.text}\nERR_SERVER_BUSY\n`)
    return headers.filter((each) => each.includes('-error-code'))
  }
  assert.deepEqual(await heard(), ['postern-error-code: ERR_SERVER_BUSY', number])
  isOn = false
  assert.deepEqual(await heard(), ['postern-error-code: ERR_SERVER_BUSY'])
  isOn = true
  assert.deepEqual(await heard(), ['postern-error-code: ERR_SERVER_BUSY', number])
})

test('one more than may be answered at once is closed without an answer', async (t) => {
  const dial = await overLimit(t, { maxAtOnce: 1, ngrokErrorHeader: () => true })
  const first = dial()
  await once(first, 'connect')
  const second = dial()
  second.on('error', () => {})
  assert.equal(await text(second).catch(() => ''), '')
  first.write(get)
  assert.match(await text(first), /^HTTP\/1\.1 503 /)
})
