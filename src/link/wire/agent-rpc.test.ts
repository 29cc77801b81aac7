import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { answer, call, type Message, readMessage, tell } from './agent-rpc.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends } from './testing/test-link.ts'
import { WireError } from './wire-error.ts'

/** What the server reads from a stream on which an agent sends `text`, in chunks of `chunk` bytes. */
function read(text: string, { chunk = Number.POSITIVE_INFINITY, maxBytes = 1000, ends = false } = {}) {
  const results: (Message | WireError)[] = []
  const pair = new Ends({
    server: { onStream: (stream) => readMessage(stream, (result) => results.push(result), { maxBytes }) },
  })
  const stream = pair.agent.open(Buffer.concat([typeHead(streamTypes.auth), Buffer.from(text)]))
  if (stream instanceof WireError) assert.fail(stream)
  if (ends) stream.end()
  pair.settle(chunk)
  assert.ok(results.length <= 1)
  return results[0]
}

describe('a message is read', () => {
  const text = '{"A":"}{\\"\\\\","B":[{"C":"]ü"}],"D":null}'
  const message = { A: '}{"\\', B: [{ C: ']ü' }], D: null }

  test('without waiting for the end of the stream', () => assert.deepEqual(read(text), message))
  test('with a line break after it, as agents in Go send it', () => assert.deepEqual(read(`${text}\n`), message))
  test('byte by byte', () => assert.deepEqual(read(` ${text}`, { chunk: 1 }), message))
  test('and is incomplete while its last bracket is missing', () => assert.equal(read(text.slice(0, -1)), undefined))
})

describe('a message is refused', () => {
  const cases: { name: string; text: string; code?: string; ends?: boolean }[] = [
    { name: 'that is too long', text: `{"a":"${'x'.repeat(1000)}"}`, code: 'message_too_large' },
    { name: 'that is not an object', text: '[1]' },
    { name: 'that is text', text: '"a"' },
    { name: 'that is not JSON', text: '{a}' },
    { name: 'whose brackets do not match', text: '{"a":[}' + ']' },
    { name: 'that names a key twice', text: '{"a":1,"a":2}' },
    { name: 'that is nested too deeply', text: `{"a":${'['.repeat(40)}` },
    { name: 'that never ends', text: '{"a":', ends: true },
    { name: 'that never begins', text: '', ends: true },
  ]
  for (const { name, text, code = 'message_invalid', ends = false } of cases) {
    test(name, () => {
      const result = read(text, { ends })
      assert.ok(result instanceof WireError)
      assert.equal(result.code, code)
      assert.equal(result.side, 'peer')
    })
  }
})

describe('a call', () => {
  test('is answered, and its stream is forgotten on both sides', async () => {
    const ends = new Ends({
      server: { onStream: (stream, type) => readMessage(stream, (asked) => answer(stream, { type, asked })) },
    })
    const answered = call(ends.agent, streamTypes.unbind, { Id: 'x' })
    ends.settle()
    assert.deepEqual(await answered, { type: 2, asked: { Id: 'x' } })
    assert.deepEqual([ends.agent.size, ends.server.size], [0, 0])
  })

  test('that is larger than a window is answered', async () => {
    const ends = new Ends({
      server: { onStream: (stream) => readMessage(stream, (asked) => answer(stream, { asked })) },
    })
    const large = { text: 'x'.repeat(900_000) }
    let got: unknown
    void call(ends.agent, streamTypes.bind, large).then((message) => {
      got = message
    })
    // Each side reads a large message in its own turn.
    while (got === undefined) {
      ends.settle()
      await setImmediate()
    }
    assert.deepEqual(got, { asked: large })
  })

  test('that is answered by a peer which never ends the stream leaves no stream here', async () => {
    const ends = new Ends({ agent: { onStream: (stream) => void stream.write(Buffer.from('{"Error":""}\n')) } })
    const answered = call(ends.server, streamTypes.stop, {})
    ends.settle()
    assert.deepEqual(await answered, { Error: '' })
    assert.equal(ends.server.size, 0)
  })

  test('that is not answered times out', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const ends = new Ends()
    const answered = call(ends.server, streamTypes.stop, {}, { timeoutMs: 10_000 })
    ends.settle()
    t.mock.timers.tick(10_000)
    const result = await answered
    assert.ok(result instanceof WireError && result.code === 'timed_out')
    ends.settle()
    assert.deepEqual([ends.server.size], [0])
  })

  test('on a session that ends meanwhile fails with the error that ended it', async () => {
    const ends = new Ends()
    const answered = call(ends.server, streamTypes.stop, {})
    ends.settle()
    ends.agent.close()
    ends.settle()
    const result = await answered
    assert.ok(result instanceof WireError && result.code === 'session_closed')
  })
})

test('a message without an answer ends its stream at once', () => {
  const reported: unknown[] = []
  const ends = new Ends({ agent: { onStream: (stream) => readMessage(stream, (message) => reported.push(message)) } })
  assert.equal(tell(ends.server, streamTypes.stopTunnel, { Id: 'a' }), undefined)
  ends.settle()
  assert.deepEqual(reported, [{ Id: 'a' }])
  assert.equal(ends.server.size, 0)
})
