/** Bytes and behaviour that no client library would produce: the API answers or closes, and continues. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { errors } from '../../src/model/errors.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'

const KEY = 'socket_test_api_key_of_the_first_admin'
const IDLE_CONNECTIONS = 500
const RESETS = 50

const common = `Host: localhost\r\nAuthorization: Bearer ${KEY}\r\nService-Version: 2\r\n`
const post = `POST /ip_policies HTTP/1.1\r\n${common}Content-Type: application/json\r\n`
const get = `GET /ip_policies?limit=1 HTTP/1.1\r\n${common}\r\n`
const chunked = `${post}Transfer-Encoding: chunked\r\n\r\n`

/** `closes`: the server ends the connection. `half`: we end our side right after the bytes. */
interface Case {
  readonly bytes: string | Buffer
  readonly statuses: readonly number[]
  readonly closes?: boolean
  readonly half?: boolean
}

const cases: Readonly<Record<string, Case>> = {
  'a plain request': { bytes: get, statuses: [200] },
  'five requests at once': { bytes: get.repeat(5), statuses: [200, 200, 200, 200, 200] },
  'no HTTP at all': { bytes: 'hello\r\n\r\n', statuses: [400], closes: true },
  zeros: { bytes: Buffer.alloc(5000), statuses: [400], closes: true },
  'a TLS greeting': { bytes: Buffer.from('16030100a5010000a10303', 'hex'), statuses: [400], closes: true },
  'an HTTP/2 preface': { bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', statuses: [400], closes: true },
  'garbage behind a request': { bytes: `${get}garbage\r\n\r\n`, statuses: [200, 400], closes: true },
  'garbage behind two requests': { bytes: `${get}${get}\0\0\0`, statuses: [200, 200, 400], closes: true },
  'garbage behind a create': {
    bytes: `${post}Content-Length: 2\r\n\r\n{}garbage\r\n\r\n`,
    statuses: [201, 400],
    closes: true,
  },
  'a body longer than it says': {
    bytes: `${post}Content-Length: 2\r\n\r\n{}{"description":"more"}`,
    statuses: [201, 400],
    closes: true,
  },
  'a bad chunk behind a request': { bytes: `${get}${chunked}zz\r\n`, statuses: [200, 400], closes: true },
  'a chunk size beyond all integers': {
    bytes: `${chunked}ffffffffffffffffff\r\n{}\r\n0\r\n\r\n`,
    statuses: [400],
    closes: true,
  },
  'a chunk of negative size': { bytes: `${chunked}-2\r\n{}\r\n0\r\n\r\n`, statuses: [400], closes: true },
  'a good body in chunks': { bytes: `${chunked}1;a=b\r\n{\r\n1\r\n}\r\n0\r\n\r\n`, statuses: [201] },
  'a length and chunks': {
    bytes: `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    statuses: [400],
    closes: true,
  },
  'chunks and a length': {
    bytes: `${post}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
    statuses: [400],
    closes: true,
  },
  'two lengths': { bytes: `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, statuses: [400], closes: true },
  'a length that is a word': { bytes: `${post}Content-Length: two\r\n\r\n{}`, statuses: [400], closes: true },
  'a length with a plus': { bytes: `${post}Content-Length: +2\r\n\r\n{}`, statuses: [400], closes: true },
  'a length beyond all integers': {
    bytes: `${post}Content-Length: ${'9'.repeat(40)}\r\n\r\n{}`,
    statuses: [400],
    closes: true,
  },
  'a coding that is not chunks': {
    bytes: `${post}Transfer-Encoding: gzip\r\n\r\n{}`,
    statuses: [400],
    closes: true,
  },
  'a space before the colon': { bytes: `GET / HTTP/1.1\r\nHost : x\r\n\r\n`, statuses: [400], closes: true },
  'a NUL in a header': { bytes: `GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n`, statuses: [400], closes: true },
  'a header of 20 KB': {
    bytes: `GET / HTTP/1.1\r\n${common}X: ${'x'.repeat(20_000)}\r\n\r\n`,
    statuses: [431],
    closes: true,
  },
  'a head without an end': {
    bytes: `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(10_000)}`,
    statuses: [431],
    closes: true,
  },
  'a path of 20 KB': { bytes: `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${common}\r\n`, statuses: [431], closes: true },
  'a path without a slash': { bytes: `GET ip_policies HTTP/1.1\r\n${common}\r\n`, statuses: [400], closes: true },
  'a path with a fragment': { bytes: `GET /ip_policies#x HTTP/1.1\r\n${common}\r\n`, statuses: [404] },
  'a path that cannot be decoded': { bytes: `GET /ip_policies/%ff HTTP/1.1\r\n${common}\r\n`, statuses: [404] },
  'a whole URL as the target': { bytes: get.replace('/ip', 'http://localhost/ip'), statuses: [200] },
  'the target of a proxy': { bytes: `CONNECT localhost:443 HTTP/1.1\r\n${common}\r\n`, statuses: [400], closes: true },
  'a star as the target': { bytes: `OPTIONS * HTTP/1.1\r\n${common}\r\n`, statuses: [404] },
  'an unknown method': { bytes: `BREW /ip_policies HTTP/1.1\r\n${common}\r\n`, statuses: [400], closes: true },
  'an upgrade': { bytes: get.replace('\r\n\r\n', '\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n'), statuses: [200] },
  'an unknown expectation': { bytes: `${post}Expect: tea\r\nContent-Length: 2\r\n\r\n{}`, statuses: [201] },
  'HTTP/1.0': { bytes: get.replace('HTTP/1.1', 'HTTP/1.0'), statuses: [200], closes: true },
  'a side closed behind a request': { bytes: get, statuses: [200], closes: true, half: true },
  'a side closed behind three requests': { bytes: get.repeat(3), statuses: [200, 200, 200], closes: true, half: true },
  'a side closed behind a create': {
    bytes: `${post}Content-Length: 2\r\n\r\n{}`,
    statuses: [201],
    closes: true,
    half: true,
  },
  'a side closed inside a body': {
    bytes: `${post}Content-Length: 9\r\n\r\n{}`,
    statuses: [400],
    closes: true,
    half: true,
  },
  'a side closed inside a head': { bytes: post, statuses: [400], closes: true, half: true },
  'a length over 1 MiB': { bytes: `${post}Content-Length: 1048577\r\n\r\n{`, statuses: [413], closes: true },
  'chunks over 1 MiB': {
    bytes: `${chunked}${`10000\r\n${' '.repeat(65_536)}\r\n`.repeat(17)}`,
    statuses: [413],
    closes: true,
  },
}

eachStore((store) => {
  let platform: Platform
  before(async () => {
    const env = { POSTERN_BOOTSTRAP_API_KEY: KEY }
    platform = await startPlatform({ databaseUrl: await store.url(), env })
  })
  after(async () => {
    await platform.stop()
  })

  for (const [what, { bytes, statuses, closes = false, half = false }] of Object.entries(cases)) {
    test(`${what}: ${statuses.join(', ')}${closes ? ' and the end' : ''}`, async () => {
      const peer = await Peer.open(platform.url)
      peer.socket.write(bytes)
      if (half) peer.socket.end()
      const answers = closes ? await peer.untilClosed() : await peer.untilAnswers(statuses.length)
      peer.socket.destroy()
      assert.deepEqual(
        answers.map(({ status }) => status),
        statuses,
      )
      for (const answer of answers) if (answer.status >= 400) assertRefusal(answer)
    })
  }

  test('half a request stores nothing', async () => {
    const before = await list()
    for (const bytes of [
      `${post}Content-Length: 9\r\n\r\n{}`,
      `${chunked}2\r\n{}\r\n`,
      `${chunked}2\r\n{}\r\nzz\r\n`,
    ]) {
      const peer = await Peer.open(platform.url)
      peer.socket.end(bytes)
      await peer.untilClosed()
    }
    assert.deepEqual(await list(), before)
  })

  test(`${RESETS} resets in the middle of a body are not errors`, async () => {
    for (let i = 0; i < RESETS; i++) {
      const peer = await Peer.open(platform.url)
      await new Promise((resolve) => peer.socket.write(`${post}Content-Length: 100000\r\n\r\n{`, resolve))
      peer.socket.resetAndDestroy()
      await peer.untilClosed()
    }
    await list()
  })

  test(`${RESETS} resets before the answer are not errors`, async () => {
    for (let i = 0; i < RESETS; i++) {
      const peer = await Peer.open(platform.url)
      await new Promise((resolve) => peer.socket.write(get.repeat(10), resolve))
      peer.socket.resetAndDestroy()
      await peer.untilClosed()
    }
    await list()
  })

  test(`${IDLE_CONNECTIONS} connections that send nothing, or half a head, do not block others`, async () => {
    const peers = await Promise.all(Array.from({ length: IDLE_CONNECTIONS }, () => Peer.open(platform.url)))
    for (const [i, { socket }] of peers.entries()) if (i % 2 === 0) socket.write(get.slice(0, i % get.length))
    await list()
    for (const { socket } of peers) socket.destroy()
    await list()
  })

  test('none of this was an error of the server', () => {
    assert.deepEqual(
      platform.log.filter((line) => !/"level":"(info|debug)"/.test(line)),
      [],
    )
  })

  async function list(): Promise<string> {
    const peer = await Peer.open(platform.url)
    peer.socket.write(get)
    const [answer] = await peer.untilAnswers(1)
    peer.socket.destroy()
    assert.equal(answer?.status, 200)
    return answer.text
  }
})

interface RawAnswer {
  readonly status: number
  readonly text: string
}

class Peer {
  readonly socket: Socket
  #arrived = ''
  #closed = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#arrived += text
    })
    // When the server closes without reading everything, the kernel may reset; what came before counts.
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#closed = true
    })
  }

  static async open(url: string): Promise<Peer> {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    const peer = new Peer(socket)
    await once(socket, 'connect')
    return peer
  }

  async untilAnswers(count: number): Promise<RawAnswer[]> {
    while (answersIn(this.#arrived).length < count && !this.#closed) {
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')])
    }
    return answersIn(this.#arrived)
  }

  async untilClosed(): Promise<RawAnswer[]> {
    if (!this.#closed) await once(this.socket, 'close')
    return answersIn(this.#arrived)
  }
}

/** The complete answers at the start of `text`. */
function answersIn(text: string): RawAnswer[] {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return []
  const head = text.slice(0, end)
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
  const body = text.slice(end + 4, end + 4 + length)
  if (body.length < length) return []
  return [{ status: Number(head.split(' ')[1]), text: body }, ...answersIn(text.slice(end + 4 + length))]
}

function assertRefusal({ status, text }: RawAnswer): void {
  const { error_code: code, status_code, details } = JSON.parse(text)
  const entry = Object.entries(errors).find(([name]) => `ERR_${name}` === code)?.[1]
  assert.equal(entry?.status, status, text)
  assert.equal(status_code, status)
  assert.match(details.operation_id, /^op_[0-9A-Za-z]{27}$/)
}
