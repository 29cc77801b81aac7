/** Strangers at the door for agents: limited in size, time and number, logged once each, without effect on others. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, before, describe, type TestContext, test } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { UNAUTHENTICATED_BYTES } from '../../src/link/wire/wire-bounds.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

/** From connect to authenticated, with some time for a busy machine. */
const TRIAL_MS = 10_000 + 5000

/** The most unauthenticated connections from one address. */
const UNPROVEN_PER_ADDRESS = 256

/** Failed authentications from one address in a minute. */
const FAILURES = 60

let platform: Platform
let url = ''
const closing: (() => unknown)[] = []
before(async () => {
  // One plane: each counts strangers and their guesses separately, and the counts here are exact.
  platform = await startPlatform({ flags: { 'drain-timeout': '1s', 'log-level': 'debug' }, planeCount: 1 })
  const { address } = await httpUpstream({ after: (close) => closing.push(close) }, (_, response) =>
    response.end('fine'),
  )
  const { agents: server, ca, authtoken } = platform
  const agent = await ownDriver.connect({ server, ca, authtoken })
  closing.push(() => agent.close())
  const tunnel = await agent.open({ addr: address })
  url = tunnel.url
})
after(async () => {
  for (const close of closing.reverse()) await close()
  await platform.stop()
})

/** Every test uses its own source address, so that tests do not count against each other. */
let place = 1
const nextPlace = (): string => `127.0.0.${++place}`

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

function dialPlain(t: TestContext, from: string): Socket {
  const socket = connectTcp({ port: portOf(platform.agents), host: '127.0.0.1', localAddress: from })
  return kept(t, socket)
}

async function dialSecured(t: TestContext, from: string): Promise<TLSSocket> {
  const socket = connectTls({ socket: dialPlain(t, from), ca: platform.ca, host: '127.0.0.1' })
  kept(t, socket)
  await once(socket, 'secureConnect')
  return socket
}

function kept<S extends Socket>(t: TestContext, socket: S): S {
  socket.on('error', () => {}).resume()
  t.after(() => socket.destroy())
  return socket
}

function isClosed(what: string, socket: Socket, limitMs = TRIAL_MS): Promise<boolean> {
  return until(`the connection is closed: ${what}`, () => socket.closed, { limitMs })
}

/** What was logged about one address. */
function logged(from: string): { level: string; msg: string; reason?: string }[] {
  return platform.log.filter((line) => line.includes(`"peer":"${from}"`)).map((line) => JSON.parse(line))
}

/** `length`, type and flags, stream, body. */
function frame(type: number, flags: number, stream: number, body: Buffer, length = body.length): Buffer {
  const head = Buffer.alloc(8)
  head.writeUIntBE(length, 0, 3)
  head[3] = (type << 4) | flags
  head.writeUInt32BE(stream, 4)
  return Buffer.concat([head, body])
}

const DATA = 1
const SYN = 2
const auth = (text: string): Buffer => frame(DATA, SYN, 3, Buffer.concat([Buffer.alloc(4), Buffer.from(text)]))

/** What strangers send after the TLS handshake, and the logged reason. */
const bad: [what: string, bytes: () => Buffer, reason: RegExp][] = [
  ['noise', () => randomBytes(4096), /./],
  ['HTTP', () => Buffer.from('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'), /./],
  ['an authentication that is not JSON', () => auth('[1, 2'), /./],
  ['an empty authentication', () => auth('{}'), /version|token/],
  ['an authentication that is nested deeply', () => auth(`{"Extra":${'['.repeat(100)}`), /./],
  ['a frame that claims to be huge', () => frame(DATA, SYN, 3, Buffer.alloc(64), 0xffffff), /./],
  [
    'more than a stranger may',
    () => auth(`{"Version":["3"],"x":"${'x'.repeat(2 * UNAUTHENTICATED_BYTES)}"`),
    /too much/,
  ],
  ['a stream with the parity of the server', () => frame(DATA, SYN, 2, Buffer.alloc(4)), /./],
  ['a credit of zero', () => Buffer.concat([auth('{'), frame(2, 0, 3, Buffer.alloc(4))]), /./],
]

// In parallel, since some use up all the time that they have.
describe('a stranger', { concurrency: true }, () => {
  for (const [what, bytes, reason] of bad) {
    test(`that sends ${what} is disconnected, and logged once`, async (t) => {
      const from = nextPlace()
      const socket = await dialSecured(t, from)
      socket.write(bytes())
      await isClosed(what, socket)
      const lines = logged(from)
      assert.deepEqual(
        lines.map(({ level, msg }) => [level, msg]),
        [['info', 'agent connection refused']],
      )
      assert.match(lines[0]?.reason ?? '', reason)
    })
  }

  test('that does not speak TLS is disconnected, and not logged', async (t) => {
    const from = nextPlace()
    const socket = dialPlain(t, from)
    socket.write('GET / HTTP/1.1\r\n\r\n')
    await isClosed('no TLS', socket)
    assert.deepEqual(
      logged(from).map(({ level }) => level),
      ['debug'],
    )
  })

  test('that asks for a tunnel before it authenticates gets only an error message', async (t) => {
    const socket = await dialSecured(t, nextPlace())
    const bind = Buffer.concat([Buffer.of(0, 0, 0, 1), Buffer.from('{"Proto":"https"}')])
    socket.pause().write(frame(DATA, SYN, 3, bind))
    const [answer] = (await once(socket.resume(), 'data')) as [Buffer]
    assert.match(answer.toString('latin1'), /Authenticate first.*ERR_NGROK_801/s)
    assert.equal((await platform.admin.get('/tunnels')).tunnels.length, 1)
  })

  test('that sends nothing, or one byte at a time, has ten seconds', async (t) => {
    const from = nextPlace()
    const mute = dialPlain(t, from)
    const secured = await dialSecured(t, from)
    const dripping = await dialSecured(t, from)
    const hello = dialPlain(t, from)
    const text = auth(`{"Version":["3"],"ClientId":"${'x'.repeat(1000)}`)
    let at = 0
    const drip = setInterval(() => {
      dripping.write(text.subarray(at, ++at))
      hello.write(Buffer.of(0x16))
    }, 100)
    t.after(() => clearInterval(drip))
    const all = { mute, secured, dripping, hello }
    await Promise.all(Object.entries(all).map(([what, socket]) => isClosed(what, socket)))
    assert.equal(logged(from).length, 4)
  })
})

describe('many strangers', () => {
  test('from one address make room for newer ones, while others are not affected', async (t) => {
    const from = nextPlace()
    const sockets = Array.from({ length: UNPROVEN_PER_ADDRESS + 100 }, () => dialPlain(t, from))
    await until('the oldest connections are closed', () => sockets.filter(({ closed }) => closed).length === 100)
    // One line for all of them.
    const lines = logged(from).filter(({ level }) => level === 'warn')
    assert.deepEqual(
      lines.map(({ msg, reason }) => [msg, reason]),
      [
        [
          'unauthenticated agent connections dropped to make room for newer ones',
          'too many connections from this address',
        ],
      ],
    )
    assert.equal((await visit(url, platform)).text, 'fine')
    const { agents: server, ca, authtoken } = platform
    const other = await ownDriver.connect({ server, ca, authtoken })
    await other.open({ addr: 1 })
    await other.close()
    for (const socket of sockets) socket.destroy()
  })

  test('that guess authtokens are logged in a few lines, while others are let in', async (t) => {
    const from = nextPlace()
    const guess = async (): Promise<string> => {
      const plain = dialPlain(t, from)
      const socket = kept(t, connectTls({ socket: plain, ca: platform.ca, host: '127.0.0.1' }))
      const extra = { Authtoken: randomBytes(16).toString('hex') }
      socket.write(auth(JSON.stringify({ Version: ['3'], ClientId: '', Extra: extra })))
      const answer = await new Promise<string>((resolve) => {
        let text = ''
        socket.on('data', (bytes: Buffer) => {
          text += bytes.toString('latin1')
          if (text.includes('ERR_NGROK')) resolve(text)
        })
        socket.once('close', () => resolve(''))
      })
      socket.destroy()
      return answer
    }
    const answers = await Promise.all(Array.from({ length: FAILURES + 20 }, guess))
    for (const answer of answers) assert.match(answer, /ERR_NGROK_107/)
    assert.equal(logged(from).filter(({ msg }) => msg === 'agent connection refused').length, FAILURES)
    assert.equal(logged(from).filter(({ msg }) => msg === 'agent logins keep failing').length, 1)
    const { agents: server, ca, authtoken } = platform
    await (await ownDriver.connect({ server, ca, authtoken })).close()
    assert.equal((await visit(url, platform)).text, 'fine')
  })
})
