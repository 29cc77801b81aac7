/** HTTP/2 requests, frame by frame, that would become other requests in HTTP/1.1 if they were written unchanged. */
import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'

type Pairs = readonly (readonly [name: string, value: string])[]

export interface FrameCase {
  readonly what: string
  readonly headers: Pairs
  /** Pieces of the body; an empty list ends the stream with the head. */
  readonly data?: readonly string[]
  readonly trailers?: Pairs
  /** Whether the service sees one request with this body; `without`: it lacks a field, or the request is refused. */
  readonly passes: 'whole' | 'without' | 'never'
}

/** Stands for the name of the edge. */
const NAME = '{name}'

const pseudo = ({ method = 'POST', path = '/a', authority = NAME, scheme = 'https' } = {}): Pairs => [
  [':method', method],
  [':scheme', scheme],
  [':authority', authority],
  [':path', path],
]
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'

const refused = (what: string, headers: Pairs, more: Partial<FrameCase> = {}): FrameCase => {
  return { what, headers, passes: 'never', data: ['hello'], ...more }
}
const passed = (what: string, headers: Pairs, more: Partial<FrameCase> = {}): FrameCase => {
  return { what, headers, passes: 'whole', data: ['hello'], ...more }
}
const robbed = (what: string, headers: Pairs, more: Partial<FrameCase> = {}): FrameCase => {
  return { what, headers, passes: 'without', data: ['hello'], ...more }
}

export const frameCases: readonly FrameCase[] = [
  passed('a plain request', pseudo()),
  passed('a length that is right', [...pseudo(), ['content-length', '5']]),
  passed('a body in pieces', [...pseudo(), ['content-length', '5']], { data: ['he', '', 'llo'] }),
  passed('no body', pseudo({ method: 'GET' }), { data: [] }),
  passed('trailers', pseudo(), { trailers: [['x-t', '1']] }),
  robbed('a header with an underscore', [...pseudo(), ['content_length', '3'], ['transfer_encoding', 'chunked']]),
  robbed('trailers that frame', pseudo(), {
    trailers: [
      ['content-length', '3'],
      ['transfer-encoding', 'chunked'],
    ],
  }),
  passed('te of trailers', [...pseudo(), ['te', 'trailers']]),
  refused('a length that is too short', [...pseudo(), ['content-length', '3']]),
  refused('a length that is too long', [...pseudo(), ['content-length', '9']]),
  refused('two lengths', [...pseudo(), ['content-length', '5'], ['content-length', '3']]),
  ...['5, 5', '+5', '-1', '0x5', '5 ', '', '99999999999999999999999'].map((value) =>
    refused(`a length of '${value}'`, [...pseudo(), ['content-length', value]]),
  ),
  refused('a length without a body', [...pseudo(), ['content-length', '5']], { data: [] }),
  ...['chunked', 'identity', 'gzip, chunked'].map((value) =>
    refused(`a transfer coding of ${value}`, [...pseudo(), ['transfer-encoding', value]], {
      data: ['0\r\n\r\n', SMUGGLED],
    }),
  ),
  ...['connection', 'keep-alive', 'proxy-connection', 'upgrade', 'http2-settings'].map((name) =>
    robbed(`the header ${name}`, [...pseudo(), [name, name === 'connection' ? 'close' : 'x']]),
  ),
  refused('te of chunked', [...pseudo(), ['te', 'chunked']]),
  ...['a\r\nx-b: c', 'a\nx-b: c', 'a\r\n\r\nGET /smuggled HTTP/1.1', 'a\0b', 'a\rb', '\r\n', 'a\n'].map((value) =>
    robbed(`the value ${JSON.stringify(value)}`, [...pseudo(), ['x-a', value]]),
  ),
  ...['x-a\r\nx-b', 'x-a: b\r\nx', 'x a', 'x:a', '', 'X-Upper', 'x-a\n', 'x-a\0', 'x-é', 'x(a)', ':other', 'host '].map(
    (name) => robbed(`the name ${JSON.stringify(name)}`, [...pseudo(), [name, 'b']]),
  ),
  ...[
    '/a HTTP/1.1\r\nx-b: c',
    '/a b',
    '/a\tb',
    '/a\r\n',
    '/a\n',
    '/a\0',
    '',
    'a',
    '/a#b',
    '*',
    'http://{name}/a',
    '/ä',
  ].map((path) => refused(`the path ${JSON.stringify(path)}`, pseudo({ path }))),
  ...['GET / HTTP/1.1\r\nx: y\r\n\r\nGET', 'GET ', 'G T', '', 'GET\r\n', 'GET\0', 'CONNECT', 'G:T'].map((method) =>
    refused(`the method ${JSON.stringify(method)}`, pseudo({ method })),
  ),
  ...[
    '{name}\r\nx: y',
    'u@{name}',
    '{name} x',
    '{name}/a',
    '',
    '{name},evil.test',
    '{name}:99999',
    '{name}\0',
    '{name}?a',
  ].map((authority) => refused(`the authority ${JSON.stringify(authority)}`, pseudo({ authority }))),
  ...['ftp', 'https\r\n', '', 'https://{name}/'].map((scheme) =>
    refused(`the scheme ${JSON.stringify(scheme)}`, pseudo({ scheme })),
  ),
  refused('a host of another', [...pseudo(), ['host', 'evil.test']]),
  refused('two hosts', [...pseudo(), ['host', NAME], ['host', 'evil.test']]),
  refused('two paths', [...pseudo(), [':path', '/b']]),
  refused('two methods', [[':method', 'GET'], ...pseudo()]),
  refused(
    'no path',
    pseudo().filter(([name]) => name !== ':path'),
  ),
  refused(
    'no method',
    pseudo().filter(([name]) => name !== ':method'),
  ),
  refused(
    'no scheme',
    pseudo().filter(([name]) => name !== ':scheme'),
  ),
  refused('a field before those of HTTP/2', [['x-a', 'b'], ...pseudo()]),
  refused('a status', [...pseudo(), [':status', '200']]),
  refused('trailers with fields of HTTP/2', pseudo(), { trailers: [[':path', '/b']] }),
  refused('trailers with a name in capitals', pseudo(), { trailers: [['X-T', '1']] }),
]

/** Sends a case on its own connection, and waits until the edge is done with it. */
export async function sendFrames(
  socket: TLSSocket,
  { headers, data = [], trailers }: FrameCase,
  name: string,
): Promise<void> {
  socket.on('error', () => {})
  const done = settled(socket)
  const isHeadAlone = data.length === 0 && !trailers
  const frames = [
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(FRAME.settings, 0, 0, Buffer.alloc(0)),
    frame(FRAME.headers, END_HEADERS | (isHeadAlone ? END_STREAM : 0), 1, block(headers, name)),
    ...data.map((text, i) =>
      frame(FRAME.data, i === data.length - 1 && !trailers ? END_STREAM : 0, 1, Buffer.from(text, 'latin1')),
    ),
    ...(trailers ? [frame(FRAME.headers, END_HEADERS | END_STREAM, 1, block(trailers, name))] : []),
  ]
  socket.write(Buffer.concat(frames))
  await done
  socket.destroy()
}

const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7 } as const
const END_STREAM = 1
const END_HEADERS = 4

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Each field written out, without a table and without Huffman (RFC 7541 §6.2.2). */
function block(pairs: Pairs, name: string): Buffer {
  return Buffer.concat(
    pairs.flatMap((pair) => [Buffer.from([0]), ...pair.map((text) => literal(text.replaceAll(NAME, name)))]),
  )
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  const size = bytes.length < 127 ? [bytes.length] : [127, ...varint(bytes.length - 127)]
  return Buffer.concat([Buffer.from(size), bytes])
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]
}

/** Resolves when the stream is answered to its end or reset, or the connection is over. */
async function settled(socket: TLSSocket): Promise<void> {
  let bytes: Buffer = Buffer.alloc(0)
  const isOver = (): boolean => {
    for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
      const [type, flags] = [bytes[at + 3], bytes[at + 4] ?? 0]
      if (type === FRAME.goaway || type === FRAME.reset) return true
      if ((type === FRAME.headers || type === FRAME.data) && (flags & END_STREAM) !== 0) return true
    }
    return false
  }
  while (!isOver()) {
    const [chunk] = (await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [undefined])])) as [
      Buffer?,
    ]
    if (!chunk) return
    bytes = Buffer.concat([bytes, chunk])
  }
}
