import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { buildProxyHead, type ProxyHeader, readProxyHeader } from './proxy-header.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends, Heard } from './testing/test-link.ts'
import { WireError } from './wire-error.ts'

const header: ProxyHeader = {
  id: '4a1cbf5eb9b8427b',
  clientAddr: '127.0.0.1:50662',
  proto: 'https',
  edgeType: 'none',
  passthroughTls: false,
  requestId: '',
}

function read(head: Buffer, { chunk = Number.POSITIVE_INFINITY, ends = false } = {}) {
  const results: (ProxyHeader | WireError)[] = []
  const rest = new Heard()
  const pair = new Ends({
    agent: {
      onStream: (stream) =>
        readProxyHeader(stream, (result) => {
          results.push(result)
          if (!(result instanceof WireError)) stream.attach(rest)
        }),
    },
  })
  const stream = pair.server.open(head)
  if (stream instanceof WireError) assert.fail(stream)
  if (ends) stream.end()
  pair.settle(chunk)
  assert.ok(results.length <= 1)
  return { result: results[0], rest: rest.bytes.toString() }
}

test('the head is the type, a little-endian length, and the five fields in the spelling of the wire', () => {
  const head = buildProxyHead(header)
  const json =
    '{"Id":"4a1cbf5eb9b8427b","ClientAddr":"127.0.0.1:50662","Proto":"https","EdgeType":"0","PassthroughTLS":false}'
  assert.equal(head.subarray(0, 12).toString('hex'), `00000003${json.length.toString(16)}00000000000000`)
  assert.equal(head.subarray(12).toString(), json)
})

test('the id of the request is sent only if there is one', () => {
  const head = buildProxyHead({ ...header, requestId: '0123456789abcdef' })
  assert.match(head.toString(), /,"PassthroughTLS":false,"RequestId":"0123456789abcdef"\}$/)
  assert.deepEqual(read(head).result, { ...header, requestId: '0123456789abcdef' })
})

describe('a header is read without the bytes after it', () => {
  const head = Buffer.concat([buildProxyHead({ ...header, edgeType: 'https' }), Buffer.from('GET /')])
  const expected = { result: { ...header, edgeType: 'https' }, rest: 'GET /' }
  test('in one chunk', () => assert.deepEqual(read(head), expected))
  test('byte by byte', () => assert.deepEqual(read(head, { chunk: 1 }), expected))
})

describe('a header is refused', () => {
  const framed = (length: bigint, text: string): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(length)
    return Buffer.concat([typeHead(streamTypes.proxy), bytes, Buffer.from(text)])
  }
  const cases: Record<string, Buffer> = {
    'of no bytes': framed(0n, ''),
    'of a negative length': framed(-1n, '{}'),
    'that is longer than any header': framed(1n << 40n, '{}'),
    'that is not JSON': framed(2n, 'no'),
    'with a field of the wrong type': framed(14n, '{"EdgeType":3}'),
    'that is cut off': framed(20n, '{"Id":'),
  }
  for (const [name, head] of Object.entries(cases)) {
    test(name, () => {
      const { result } = read(head, { ends: true })
      assert.ok(result instanceof WireError)
      assert.equal(result.code, 'message_invalid')
    })
  }
})
