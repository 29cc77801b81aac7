/** Shapes of what a visitor may send over HTTP/1.1, from one seed, nearly all of them wrong in one or more ways. */

export interface Shape {
  readonly bytes: Buffer
  /** Where to cut it into pieces, which are sent one by one. */
  readonly cuts: readonly number[]
}

/** The seed of the shapes that every run of the tests sends. */
export const SEED = 1

/** Random numbers, the same for the same seed. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** At least 0 and less than `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }

  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)]
    if (picked === undefined) throw new Error('nothing to pick from')
    return picked
  }
}

/** Stands for the name of the edge. */
const NAME = '{name}'
const SMUGGLED = `GET /smuggled HTTP/1.1\r\nHost: ${NAME}\r\nX-Smuggled: yes\r\n\r\n`
const NEXT = `GET /next HTTP/1.1\r\nHost: ${NAME}\r\n\r\n`
const LAST = `GET /last HTTP/1.1\r\nHost: ${NAME}\r\nConnection: close\r\n\r\n`

/** How a body can be announced, or seem to be. Each entry is a list of lines without their ends. */
const framings: readonly (readonly string[])[] = [
  ...lengths().map((value) => [`Content-Length: ${value}`]),
  ...names('Content-Length').map((name) => [`${name}: 5`]),
  ...codings().map((value) => [`Transfer-Encoding: ${value}`]),
  ...names('Transfer-Encoding').map((name) => [`${name}: chunked`]),
  // Two contradictory announcements, in either order, valid or nearly valid.
  ...codings().map((value) => ['Content-Length: 5', `Transfer-Encoding: ${value}`]),
  ...names('Transfer-Encoding').map((name) => [`${name}: chunked`, 'Content-Length: 5']),
  ...lengths().map((value) => ['Transfer-Encoding: chunked', `Content-Length: ${value}`]),
  ...lengths().map((value) => ['Content-Length: 5', `Content-Length: ${value}`]),
  ...names('Content-Length').map((name) => ['Content-Length: 5', `${name}: 30`]),
  ...codings().map((value) => ['Transfer-Encoding: chunked', `Transfer-Encoding: ${value}`]),
  ['Connection: Content-Length', 'Content-Length: 5'],
  ['Connection: Transfer-Encoding', 'Transfer-Encoding: chunked'],
  ['Connection: close, Transfer-Encoding', 'Transfer-Encoding: chunked', 'Content-Length: 5'],
  ['Connection: Host', 'Content-Length: 5'],
  ['Trailer: Content-Length', 'Transfer-Encoding: chunked'],
  ['TE: chunked', 'Content-Length: 5'],
  ['TE: trailers', 'Connection: TE', 'Transfer-Encoding: chunked'],
  ['Expect: 100-continue', 'Content-Length: 5'],
  ['Expect: 100-continue', 'Transfer-Encoding: chunked'],
  ['Expect: 200-ok', 'Content-Length: 5'],
  ['Upgrade: websocket', 'Connection: Upgrade', 'Content-Length: 5'],
  ['Upgrade: websocket', 'Connection: Upgrade'],
  ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABk'],
  ['X-HTTP-Method-Override: POST', 'Content-Length: 5'],
  ['Content-Encoding: chunked', 'Content-Length: 5'],
  ['Content-Type: multipart/byteranges; boundary=a'],
  [],
]

function lengths(): readonly string[] {
  return [
    ...['5', '0', '05', '+5', '-5', '-0', '5,5', '5, 5', '5,6', '5;a', '0x5', '5.0', '5e0', '', '5 5', '"5"', "'5'"],
    ...['\t5', '5\t', '\x0b5', '5\x0b', '5\0', '\x005', '\xb95', '5\xa0', '\r5', '5\r', '5\n', '\n5', '5_0', '1_0'],
    ...['99999999999999999999', '4294967301', '18446744073709551621', '0000000000000005', '00000000000000000005'],
    ...['NaN', 'Infinity', 'five', '5h', '５', '１'].map((text) => Buffer.from(text).toString('latin1')),
  ]
}

function codings(): readonly string[] {
  return [
    ...[
      'chunked',
      'Chunked',
      'CHUNKED',
      ' chunked',
      'chunked ',
      '\tchunked',
      'chunked\t',
      '\x0bchunked',
      'chunked\x0b',
    ],
    ...['\x0cchunked', 'chunked\0', '\0chunked', '"chunked"', "'chunked'", 'chunked;q=1', 'chunked; a=b', ';chunked'],
    ...['chunked, chunked', 'identity', 'identity, chunked', 'chunked, identity', 'gzip, chunked', 'chunked, gzip'],
    ...['xchunked', 'chunkedx', 'chunke', ',chunked', 'chunked,', ', chunked', 'chunked ,', 'cow', '', 'x, chunked'],
    ...['chunked\r', '\rchunked', 'chunked\n', '\nchunked', 'chu nked', 'chunked\x85', 'c\xfaunked', '\xa0chunked'],
    ...['trailers', 'gzip', 'chunked chunked', 'chunked\tchunked', '{chunked}', 'Chunked\x7f'],
  ]
}

/** Spellings of a field name that some server accepts for it. */
function names(name: string): readonly string[] {
  const under = name.replace('-', '_')
  return [
    ...[name.toLowerCase(), name.toUpperCase(), under, `${name} `, `${name}\t`, ` ${name}`, `\t${name}`, `${name}\0`],
    ...[name.replace('-', ' '), name.replace('-', '\xad'), name.replace('-', '-\0'), `${name}\x0b`, `${name}\xa0`],
    ...[`X: y\n${name}`, `X: y\r${name}`, `X: y\r\n ${name}`, `X: y\r\n\t${name}`, `\r\n${name}`, `:${name}`],
    ...[`"${name}"`, `${name}:`, `${name}\r`, `(${name})`, `${name},`, `\x7f${name}`, name.replace('e', '\xe9')],
  ]
}

const requestLines: readonly string[] = [
  ...['GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'get', 'GeT', 'X', 'PRI', 'QUERY'].map(
    (method) => `${method} /a HTTP/1.1`,
  ),
  ...['CONNECT', '', 'G(T', 'GET\t', 'GET\0', '\x7fGET', 'G\xe9T', 'GET/', 'GET:', '"GET"'].map(
    (method) => `${method} /a HTTP/1.1`,
  ),
  ...['/', '*', '/a?b=c', '/a;b', '/a//b', '//a', '/a|b', '/a{b}', '/a%20b', '/%61', '/a/../b', '/a/%2e%2e/b'].map(
    (target) => `GET ${target} HTTP/1.1`,
  ),
  ...['/a#b', '/a b', '/a\tb', '/a\0', '/\xe4', '/a\x7f', 'a', '', '?a', '/%', '/%zz', '/%00', '/a\\b', '/a\rb'].map(
    (target) => `GET ${target} HTTP/1.1`,
  ),
  ...[
    'http://{name}/a',
    'https://{name}/a',
    'HTTP://{name}/a',
    'http://{name}',
    'http://{name}?a',
    'ftp://{name}/a',
  ].map((target) => `GET ${target} HTTP/1.1`),
  ...['http://evil.test/a', 'http://u@{name}/a', 'http:/{name}/a', 'http:///a', '{name}:443', '//{name}/a', 'x:/a'].map(
    (target) => `GET ${target} HTTP/1.1`,
  ),
  ...[
    'HTTP/1.0',
    'HTTP/0.9',
    'HTTP/2.0',
    'HTTP/1.2',
    'HTTP/1.10',
    'HTTP/01.1',
    'HTTP/1,1',
    'http/1.1',
    'HTTPS/1.1',
  ].map((version) => `POST /a ${version}`),
  ...[
    'HTTP/1.1 ',
    ' HTTP/1.1',
    'HTTP/1.1\t',
    'HTTP/1.1\0',
    'HTTP/1.1 x',
    'HTTP/ 1.1',
    'HTTP /1.1',
    '',
    'HTTP/1.1\r',
  ].map((version) => `POST /a ${version}`),
  ...['POST  /a HTTP/1.1', 'POST\t/a HTTP/1.1', 'POST /a\tHTTP/1.1', 'POST\x0b/a HTTP/1.1', ' POST /a HTTP/1.1'],
  ...['\r\nPOST /a HTTP/1.1', '\nPOST /a HTTP/1.1', '\0POST /a HTTP/1.1', '\xef\xbb\xbfPOST /a HTTP/1.1', 'POST /a'],
]

const hosts: readonly (readonly string[])[] = [
  ...['{name}', '{name}:443', '{name}.', '{NAME}', '  {name}  ', '\t{name}'].map((host) => [`Host: ${host}`]),
  ...['evil.test', 'mark.edge.test', '', '{name}, evil.test', 'u@{name}', '{name}:', '{name}:99999', '{name}:x'].map(
    (host) => [`Host: ${host}`],
  ),
  ...[
    '{name}/',
    '{name}?',
    '{name}#',
    '[::1]',
    '{name} evil.test',
    '{name}\0',
    '{name}\x0b',
    '%7bname}',
    '{name}\xa0',
  ].map((host) => [`Host: ${host}`]),
  ...names('Host').map((name) => [`${name}: {name}`]),
  ['Host: {name}', 'Host: {name}'],
  ['Host: {name}', 'Host: evil.test'],
  ['Host: evil.test', 'Host: {name}'],
  ['Host: {name}', 'X-Host: evil.test'],
  [],
]

const fields: readonly (readonly string[])[] = [
  ...[
    'X-A: b',
    'X-A:b',
    'X-A:',
    'X-A: b c',
    'X-A: \xe4',
    'x_a: b',
    'X-A: b\tc',
    'X-A: "b, c"',
    "X-A!#$%&'*+.^`|~: b",
  ].map((line) => [line]),
  ...[
    'X-A b',
    ': b',
    'X-A',
    'X A: b',
    'X-A : b',
    ' X-A: b',
    'X-A: b\r\n c',
    'X-A: b\n c',
    'X-A: b\0',
    'X-A: b\x01',
  ].map((line) => [line]),
  ...[
    'X-A: b\rc',
    'X-A: b\x7f',
    'X\xe4: b',
    'X-A: b\r',
    'X(A): b',
    'X-A,: b',
    'X-A: b\x0cc',
    '\x1bX: b',
    'X-A\n: b',
  ].map((line) => [line]),
  ['X-A: 1', 'X-A: 2', 'x-a: 3'],
  ['Postern-Mtls-Subject-Cn: a', 'X-Forwarded-For: 9.9.9.9'],
  ['X-Forwarded-For: 9.9.9.9', 'X-Forwarded-For: 8.8.8.8'],
  ['Connection: X-A', 'X-A: gone', 'X-B: kept'],
  ['Cookie: a=b', 'Cookie: c=d'],
  Array.from({ length: 120 }, (_, i) => `X-${i}: a`),
  [`X-Long: ${'a'.repeat(70_000)}`],
  [`X-Long: ${'a'.repeat(30_000)}`],
]

/** Bodies of all kinds, complete or not, some with a request hidden in them. */
const bodies: readonly string[] = [
  '',
  'hello',
  'hell',
  `hello${SMUGGLED}`,
  SMUGGLED,
  ...chunkLines().map((line) => `${line}hello\r\n0\r\n\r\n`),
  ...['\r\n', '\n', '\r', '', 'X', '\r\n\r\n', 'X\r\n', '\0\r\n'].map((end) => `5\r\nhello${end}0\r\n\r\n`),
  ...[
    '0\r\n\r\n',
    '0\n\n',
    '0\r\n\n',
    '0\n\r\n',
    '0\r\r',
    '00\r\n\r\n',
    '0;a\r\n\r\n',
    '0 \r\n\r\n',
    '-0\r\n\r\n',
    '0\r\n',
  ].map((end) => `5\r\nhello\r\n${end}`),
  ...[
    'X-T: 1',
    'Content-Length: 30',
    'Transfer-Encoding: chunked',
    'Host: evil.test',
    ' X-T: 1',
    'X-T : 1',
    'X-T',
    'X_T: 1',
  ].map((trailer) => `5\r\nhello\r\n0\r\n${trailer}\r\n\r\n`),
  ...[
    'X-T: 1\nX-U: 2',
    'X-T: 1\rX-U: 2',
    'X-T: 1\r\n 2',
    'GET /smuggled HTTP/1.1',
    ': 1',
    'X-T: \0',
    'Connection: close',
  ].map((trailer) => `5\r\nhello\r\n0\r\n${trailer}\r\n\r\n`),
  `0\r\n\r\n${SMUGGLED}`,
  `5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  `1\r\nh\r\n4\r\nello\r\n0\r\n\r\n`,
  `30\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  `5\r\nhello\r\n0\r\n${SMUGGLED}`,
  `5\r\nhello\r\n`,
]

function chunkLines(): readonly string[] {
  return [
    ...[
      '5\r\n',
      '05\r\n',
      '0000000000005\r\n',
      '00000000000000000005\r\n',
      '5;a=b\r\n',
      '5;a="b\r\n',
      '5; a\r\n',
      '5;\r\n',
    ],
    ...[
      '5 \r\n',
      '5\t\r\n',
      ' 5\r\n',
      '\t5\r\n',
      '+5\r\n',
      '-5\r\n',
      '0x5\r\n',
      '5h\r\n',
      '5,5\r\n',
      '5.0\r\n',
      '\r\n',
      'g\r\n',
    ],
    ...[
      '5\n',
      '5\r',
      '5\r\r\n',
      '5\n\r\n',
      '5\0\r\n',
      '5;\0\r\n',
      '5;a\n',
      '5;a\r',
      '5;a\rb\r\n',
      '5;a\nb\r\n',
      '5\x0b\r\n',
    ],
    ...[
      '100000000000000005\r\n',
      'fffffffffffffffb\r\n',
      '-fffffffffffffffb\r\n',
      '5_\r\n',
      '"5"\r\n',
      ';5\r\n',
      '5\xa0\r\n',
    ],
  ]
}

const lineEnds = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\n', '\n\n', '\r\n\r', '\0\r\n', '\x85'] as const

/** Each entry of each list with everything else valid, and then pairs and worse from `seed`. */
export function* shapes(seed: number, count: number): Generator<Shape> {
  const dice = new Dice(seed)
  let made = 0
  for (const text of plainShapes()) {
    if (made++ === count) return
    yield shapeOf(Buffer.from(text, 'latin1'), dice)
  }
  while (made++ < count) yield shapeOf(dice.chance(50) ? mixed(dice) : mutated(dice), dice)
}

interface Parts {
  readonly line?: string
  readonly host?: readonly string[]
  readonly framing?: readonly string[]
  readonly more?: readonly string[]
  readonly body?: string
  /** Other line ends, by line number. */
  readonly ends?: ReadonlyMap<number, string>
}

function* plainShapes(): Generator<string> {
  const chunkedBody = '5\r\nhello\r\n0\r\n\r\n'
  for (const framing of framings) {
    for (const body of ['hello', chunkedBody, `hello${SMUGGLED}`, `0\r\n\r\n${SMUGGLED}`])
      yield message({ framing, body })
  }
  for (const line of requestLines) yield message({ line })
  for (const host of hosts) yield message({ host })
  for (const more of fields) yield message({ more })
  for (const body of bodies) {
    yield message({ framing: ['Transfer-Encoding: chunked'], body })
    yield message({ framing: [`Content-Length: ${body.length}`], body })
    yield message({ framing: ['Content-Length: 5'], body })
    yield message({ body })
  }
  for (const end of lineEnds) {
    for (const at of [0, 1, 2, 3]) {
      yield message({ framing: ['Content-Length: 5'], body: 'hello', ends: new Map([[at, end]]) })
      yield message({ framing: ['Transfer-Encoding: chunked'], body: chunkedBody, ends: new Map([[at, end]]) })
    }
  }
}

function message({
  line = 'POST /a HTTP/1.1',
  host = [`Host: ${NAME}`],
  framing = [],
  more = [],
  body = '',
  ends,
}: Parts): string {
  const lines = [line, ...host, ...framing, ...more, '']
  return lines.map((each, i) => each + (ends?.get(i) ?? '\r\n')).join('') + body
}

/** Several faults at once, in any order, after valid requests. */
function mixed(dice: Dice): Buffer {
  const requests = Array.from({ length: 1 + dice.below(2) }, () => {
    const body = dice.pick(bodies)
    const right = [`Content-Length: ${body.length}`]
    const framing = dice.chance(40) ? right : [...dice.pick(framings), ...(dice.chance(20) ? dice.pick(framings) : [])]
    return message({
      line: dice.chance(20) ? dice.pick(requestLines) : 'POST /a HTTP/1.1',
      host: dice.chance(10) ? dice.pick(hosts) : [`Host: ${NAME}`],
      framing: dice.chance(50) ? framing : framing.toReversed(),
      more: dice.chance(30) ? dice.pick(fields) : [],
      body,
      ...(dice.chance(15) && { ends: new Map([[dice.below(5), dice.pick(lineEnds)]]) }),
    })
  })
  return Buffer.from([...saneOnes(dice, dice.below(3)), ...requests].join(''), 'latin1')
}

const sane: readonly string[] = [
  NEXT,
  message({ framing: ['Content-Length: 5'], body: 'hello' }),
  message({ framing: ['Transfer-Encoding: chunked'], body: '5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nX-T: 1\r\n\r\n' }),
  message({ line: 'HEAD /h?x HTTP/1.1', more: ['X-A: b', 'Connection: keep-alive, x-a'] }),
  message({
    line: 'PUT /p HTTP/1.1',
    framing: ['Expect: 100-continue', 'Content-Length: 48'],
    body: SMUGGLED.slice(0, 48),
  }),
  message({ line: 'GET http://{name}/abs?q HTTP/1.1', more: ['X-A: b', 'x-a: c'] }),
]
const oddBytes = Buffer.from('\r\n\t \0:;,05aF\x0b\x7f\x80\xa0\xff-_"(/', 'latin1')

function saneOnes(dice: Dice, count: number): string[] {
  return Array.from({ length: count }, () => dice.pick(sane))
}

/** Valid requests with a few bytes changed, or none. */
function mutated(dice: Dice): Buffer {
  let bytes: Buffer = Buffer.from(saneOnes(dice, 2 + dice.below(4)).join(''), 'latin1')
  for (let i = dice.below(4); i > 0; i--) bytes = mutatedOnce(bytes, dice)
  return bytes
}

function mutatedOnce(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(bytes.length)
  const end = Math.min(bytes.length, at + 1 + dice.below(8))
  const odd = Buffer.from([dice.pick([...oddBytes])])
  switch (dice.below(5)) {
    case 0:
      return Buffer.concat([bytes.subarray(0, at), odd, bytes.subarray(at)])
    case 1:
      return Buffer.concat([bytes.subarray(0, at), odd, bytes.subarray(at + 1)])
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])
    case 3:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)])
    default:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)])
  }
}

/** Adds requests behind it that show whether both ends agree on where it ends. */
function shapeOf(first: Buffer, dice: Dice): Shape {
  const bytes = Buffer.concat([first, Buffer.from(NEXT + LAST, 'latin1')])
  const cuts = dice.chance(25) ? Array.from({ length: 1 + dice.below(3) }, () => dice.below(bytes.length)) : []
  return { bytes, cuts: cuts.sort((a, b) => a - b) }
}

/** The shape as sent to the edge `name`. */
export function addressed({ bytes, cuts }: Shape, name: string): Shape {
  const text = bytes.toString('latin1').replaceAll(NAME, name).replaceAll('{NAME}', name.toUpperCase())
  return { bytes: Buffer.from(text, 'latin1'), cuts }
}
