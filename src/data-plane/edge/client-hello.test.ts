import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { type ClientHello, type HelloFault, HelloReader, MAX_HELLO_BYTES } from './client-hello.ts'
import { heardHello } from './testing/test-front.ts'

type Result = ClientHello | HelloFault | undefined

function read(bytes: Buffer): Result {
  return new HelloReader().push(bytes)
}

/** Pushes the pieces one by one; only the last may give a result. */
function readPieces(pieces: readonly Buffer[]): Result {
  const reader = new HelloReader()
  let result: Result
  for (const [i, piece] of pieces.entries()) {
    result = reader.push(piece)
    if (result !== undefined && i < pieces.length - 1) return `a result after piece ${i}` as HelloFault
  }
  assert.deepEqual(reader.bytes, Buffer.concat(pieces))
  return result
}

function cut(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

/** The same message in records of at most `size` bytes. */
function fragmented(hello: Buffer, size: number): Buffer {
  return Buffer.concat(cut(hello.subarray(5), size).map((piece) => record(piece)))
}

function record(piece: Buffer, type = 22): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 1, piece.length >> 8, piece.length & 255]), piece])
}

function block(lengthBytes: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length = Buffer.alloc(lengthBytes)
  length.writeUIntBE(body.length, 0, lengthBytes)
  return Buffer.concat([length, body])
}

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
const extension = (type: number, body: Buffer): Buffer => Buffer.concat([u16(type), block(2, body)])
const named = (name: string | Buffer, type = 0): Buffer =>
  extension(0, block(2, Buffer.from([type]), block(2, Buffer.from(name))))
const offering = (...protocols: string[]): Buffer =>
  extension(16, block(2, ...protocols.map((protocol) => block(1, Buffer.from(protocol)))))

/** A handmade hello. */
function hello({ extensions, tail = Buffer.alloc(0) }: { extensions?: readonly Buffer[]; tail?: Buffer } = {}): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    block(1, Buffer.alloc(32, 8)),
    block(2, u16(0x1301)),
    block(1, Buffer.from([0])),
    ...(extensions ? [block(2, ...extensions)] : []),
    tail,
  ])
  return record(Buffer.concat([Buffer.from([1]), block(3, body)]))
}

describe('hellos of real clients', () => {
  let real: { by: string; bytes: Buffer; expected: ClientHello }[]

  before(async () => {
    real = [
      {
        by: 'node',
        bytes: await heardHello((port) =>
          node({ port, servername: 'App.Example.com', ALPNProtocols: ['h2', 'http/1.1'] }),
        ),
        expected: { serverName: 'app.example.com', alpn: ['h2', 'http/1.1'], versions: [0x0304, 0x0303] },
      },
      {
        by: 'node with TLS 1.2 alone, without a name',
        bytes: await heardHello((port) => node({ port, maxVersion: 'TLSv1.2' })),
        expected: { serverName: '', alpn: [], versions: [0x0303] },
      },
      {
        by: 'openssl',
        bytes: await heardHello((port) =>
          outside(`openssl s_client -connect 127.0.0.1:${port} -servername a.test -alpn x,yz -min_protocol TLSv1.2`),
        ),
        expected: { serverName: 'a.test', alpn: ['x', 'yz'], versions: [0x0304, 0x0303] },
      },
      {
        by: 'curl',
        bytes: await heardHello((port) =>
          outside(`curl --noproxy * --tlsv1.2 --http1.1 --resolve c.test:${port}:127.0.0.1 https://c.test:${port}/`),
        ),
        expected: { serverName: 'c.test', alpn: ['http/1.1'], versions: [0x0304, 0x0303] },
      },
    ]
  })

  test('are read', () => {
    for (const { by, bytes, expected } of real) assert.deepEqual(read(bytes), expected, by)
  })

  test('are read when split at any one byte', () => {
    for (const { by, bytes, expected } of real) {
      for (let at = 1; at < bytes.length; at++) {
        assert.deepEqual(readPieces([bytes.subarray(0, at), bytes.subarray(at)]), expected, `${by}, split at ${at}`)
      }
    }
  })

  test('are read byte by byte', () => {
    for (const { by, bytes, expected } of real) assert.deepEqual(readPieces(cut(bytes, 1)), expected, by)
  })

  test('are read from records of any size, however they come', () => {
    for (const { by, bytes, expected } of real) {
      for (const size of [1, 2, 3, 4, 5, 63, 64, 100]) {
        const records = fragmented(bytes, size)
        for (const piece of [1, 2, 5, 7, 1000, records.length]) {
          assert.deepEqual(readPieces(cut(records, piece)), expected, `${by}, records of ${size}, pieces of ${piece}`)
        }
      }
    }
  })

  test('are read with more bytes after them, which are kept', () => {
    for (const { bytes, expected } of real) {
      const reader = new HelloReader()
      const more = Buffer.concat([bytes, Buffer.alloc(60_000, 9)])
      assert.deepEqual(reader.push(more), expected)
      assert.deepEqual(reader.bytes, more)
    }
  })

  test('with bytes changed are read, refused, or wait for more, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: 3 }),
        fc.array(fc.tuple(fc.nat({ max: 2000 }), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 3000 }),
        (which, changes, size) => {
          const bytes = Buffer.from(real[which]?.bytes ?? Buffer.alloc(0))
          for (const [at, value] of changes) bytes[at % bytes.length] = value
          checkResult(read(bytes))
          // The result is the same however the bytes come; it may only come early.
          const reader = new HelloReader()
          let result: Result
          for (const piece of cut(bytes, size)) result ??= reader.push(piece)
          assert.deepEqual(result, read(bytes))
        },
      ),
      { numRuns: 5000 },
    )
  })
})

test('any bytes at all are read, refused, or wait for more', () => {
  const start = fc.constantFrom([], [22], [22, 3, 1], [22, 3, 1, 0, 9, 1, 0, 0, 5])
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 300 }), (head, tail) => {
      checkResult(read(Buffer.from([...head, ...tail])))
    }),
    { numRuns: 5000 },
  )
})

function checkResult(result: Result): void {
  if (result === undefined || typeof result === 'string') return
  assert.match(result.serverName, /^([a-z0-9_-]+(\.[a-z0-9_-]+)*)?$/)
  assert.ok(result.serverName.length <= 253)
  assert.ok(result.alpn.every((protocol) => protocol.length > 0 && protocol.length < 256))
}

const plain: ClientHello = { serverName: '', alpn: [], versions: [0x0303] }

const longest = `${`${'a'.repeat(63)}.`.repeat(3)}${'b'.repeat(61)}`

const cases: [name: string, bytes: Buffer, expected: Result][] = [
  ['no extensions', hello(), plain],
  ['empty extensions', hello({ extensions: [] }), plain],
  ['unknown extensions, twice', hello({ extensions: [extension(77, u16(1)), extension(77, u16(1))] }), plain],
  [
    'a name in capitals with a trailing dot',
    hello({ extensions: [named('A.Test.')] }),
    { ...plain, serverName: 'a.test' },
  ],
  ['the longest name', hello({ extensions: [named(longest)] }), { ...plain, serverName: longest }],
  ['one more than the longest name', hello({ extensions: [named(`${longest}c`)] }), 'bad_name'],
  ['a label of 64', hello({ extensions: [named(`${'a'.repeat(64)}.test`)] }), 'bad_name'],
  ['an empty name', hello({ extensions: [named('')] }), 'bad_name'],
  ['a dot for a name', hello({ extensions: [named('.')] }), 'bad_name'],
  ['two trailing dots', hello({ extensions: [named('a.test..')] }), 'bad_name'],
  ['a wildcard for a name', hello({ extensions: [named('*.test')] }), 'bad_name'],
  ['a NUL in the name', hello({ extensions: [named('a.test\0.evil')] }), 'bad_name'],
  ['a name in UTF-8', hello({ extensions: [named('ä.test')] }), 'bad_name'],
  ['an IPv6 address for a name', hello({ extensions: [named('::1')] }), 'bad_name'],
  ['a name of another kind', hello({ extensions: [named('a.test', 1)] }), 'bad_name'],
  ['two name extensions', hello({ extensions: [named('a.test'), named('b.test')] }), 'malformed'],
  [
    'two names in one extension',
    hello({
      extensions: [extension(0, block(2, ...['a', 'b'].flatMap((n) => [Buffer.from([0]), block(2, Buffer.from(n))])))],
    }),
    'malformed',
  ],
  ['an empty list of names', hello({ extensions: [extension(0, u16(0))] }), 'malformed'],
  ['an empty name extension', hello({ extensions: [extension(0, Buffer.alloc(0))] }), 'malformed'],
  ['protocols', hello({ extensions: [offering('h2', 'x')] }), { ...plain, alpn: ['h2', 'x'] }],
  ['no protocols', hello({ extensions: [offering()] }), 'malformed'],
  ['an empty protocol', hello({ extensions: [offering('h2', '')] }), 'malformed'],
  [
    'versions with noise among them',
    hello({ extensions: [extension(43, block(1, u16(0x1a1a), u16(0x0304), u16(0x0303)))] }),
    { ...plain, versions: [0x0304, 0x0303] },
  ],
  ['half a version', hello({ extensions: [extension(43, block(1, Buffer.from([3, 4, 3])))] }), 'malformed'],
  ['bytes after the extensions', hello({ extensions: [], tail: u16(0) }), 'malformed'],
  ['an extension longer than the rest', hello({ extensions: [Buffer.from([0, 0, 0, 9, 1])] }), 'malformed'],
  ['a message that stops early', record(Buffer.from([1, 0, 0, 2, 3, 3])), 'malformed'],
  ['another message', record(Buffer.from([2, 0, 0, 0])), 'malformed'],
  ['another message after the hello', record(Buffer.concat([hello().subarray(5), Buffer.from([1])])), 'malformed'],
  ['an empty record', record(Buffer.alloc(0)), 'malformed'],
  ['an alert', record(Buffer.from([2, 40]), 21), 'not_tls'],
  ['an alert within the hello', Buffer.concat([record(Buffer.from([1, 0, 0, 99])), record(u16(0), 21)]), 'malformed'],
  ['a record of another protocol', Buffer.from([22, 2, 0]), 'not_tls'],
  ['a hello of SSL 2', Buffer.from('802e0100020015', 'hex'), 'not_tls'],
  ['a record longer than is valid', Buffer.from([22, 3, 1, 0x40, 1]), 'malformed'],
  ['a record longer than we accept', Buffer.from([22, 3, 1, 0x40, 0]), 'too_large'],
  ['a message longer than we accept', record(Buffer.from([1, 0, 0x40, 0])), 'too_large'],
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'plain_http'],
  ['the preface of HTTP/2', Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'plain_http'],
  ['the longest method', Buffer.from('OPTIONS * HTTP/1.1'), 'plain_http'],
  ['the start of a method', Buffer.from('OPTI'), undefined],
  ['SSH', Buffer.from('SSH-2.0-x'), 'not_tls'],
  ['capitals without end', Buffer.from('AAAAAAAA'), 'not_tls'],
  ['nothing', Buffer.alloc(0), undefined],
]
for (const [name, bytes, expected] of cases) {
  test(`${name}: ${typeof expected === 'string' ? expected : expected ? 'read' : 'waits'}`, () => {
    assert.deepEqual(read(bytes), expected)
    if (expected === undefined) return
    let result: Result
    const reader = new HelloReader()
    for (const piece of cut(bytes, 1)) result ??= reader.push(piece)
    assert.deepEqual(result, expected, 'byte by byte')
  })
}

test('a hello of 16 KiB is read, and one byte more is not', () => {
  const empty = hello({ extensions: [extension(99, Buffer.alloc(0))] }).length
  const padded = (size: number) => hello({ extensions: [extension(99, Buffer.alloc(size - empty))] })
  assert.equal(padded(MAX_HELLO_BYTES).length, MAX_HELLO_BYTES)
  assert.deepEqual(read(padded(MAX_HELLO_BYTES)), plain)
  assert.equal(read(padded(MAX_HELLO_BYTES + 1)), 'too_large')
})

test('a hello that never ends is refused at 16 KiB, though its records are tiny', () => {
  const message = Buffer.concat([Buffer.from([1, 0, 0x3f, 0]), Buffer.alloc(16_000)])
  const bytes = fragmented(record(message), 1)
  const reader = new HelloReader()
  let taken = 0
  let result: Result
  for (const piece of cut(bytes, 100)) {
    result = reader.push(piece)
    taken += piece.length
    if (result) break
  }
  assert.equal(result, 'too_large')
  assert.ok(taken <= MAX_HELLO_BYTES + 100)
})

function node(options: ConnectionOptions): TLSSocket {
  return connect({ host: '127.0.0.1', ...options }).on('error', () => {})
}

function outside(command: string): { destroy(): unknown } {
  const [program = '', ...args] = command.split(' ')
  // Its failure is expected: its hello gets no answer.
  const child = execFile(program, args, () => {})
  child.stdin?.end()
  return { destroy: () => child.kill() }
}
