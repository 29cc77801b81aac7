import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { peerTraits, serverTraits } from './mux-peer.ts'
import { MuxStream } from './stream.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends, Heard, type Side } from './testing/test-link.ts'
import { PENDING_RESETS, WINDOW_BYTES } from './wire-bounds.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex')
}

/** An agent that sends raw bytes to a server, which adapts to the given user agent. */
class RawAgent {
  readonly ends: Ends

  constructor(options: ConstructorParameters<typeof Ends>[0] & { userAgent?: string } = {}) {
    this.ends = new Ends(options)
    // The far end reads nothing: tests check the bytes that come back.
    this.ends.link.pipes.server.events = undefined
    this.ends.server.adapt(peerTraits(options.userAgent ?? 'ngrok-go/1.13.0'))
  }

  send(frames: string): string {
    this.ends.link.pipes.agent.write(hex(frames))
    this.ends.link.pipes.agent.deliver(Number.POSITIVE_INFINITY)
    return this.read()
  }

  read(): string {
    this.ends.turn('server')
    this.ends.link.pipes.server.deliver(Number.POSITIVE_INFINITY)
    return Buffer.concat(this.ends.link.pipes.server.log.splice(0)).toString('hex')
  }

  accepted(index = 0): WireStream {
    return this.ends.accepted.server[index]?.stream ?? assert.fail('no stream was accepted')
  }
}

function opened(ends: Ends, side: Side, first = typeHead(streamTypes.auth)): WireStream {
  const stream = ends.mux(side).open(first)
  return stream instanceof WireError ? assert.fail(stream) : stream
}

function frames(...all: string[]): string {
  return all.join('').replaceAll(' ', '')
}

describe('opening', () => {
  test('ids begin at 2 on the server and at 3 on the agent, and grow by 2', () => {
    const ends = new Ends()
    assert.deepEqual([opened(ends, 'server').id, opened(ends, 'server').id], [2, 4])
    assert.deepEqual([opened(ends, 'agent').id, opened(ends, 'agent').id], [3, 5])
  })

  test('the type and the head are in the frame that opens the stream', () => {
    const ends = new Ends()
    opened(ends, 'agent', Buffer.concat([typeHead(streamTypes.unbind), Buffer.from('{}')]))
    ends.turn('agent')
    assert.equal(
      Buffer.concat(ends.link.pipes.agent.log).toString('hex'),
      frames('000006 12 00000003', '00000002', '7b7d'),
    )
  })

  test('opening and ending are two frames', () => {
    const ends = new Ends()
    opened(ends, 'server').end()
    ends.turn('server')
    assert.equal(
      Buffer.concat(ends.link.pipes.server.log).toString('hex'),
      frames('000004 12 00000002 00000000', '000000 11 00000002'),
    )
  })

  test('a stream is announced once its type is complete, however it is cut', () => {
    const agent = new RawAgent()
    agent.send('000000 12 00000003')
    agent.send('000003 10 00000003 000000')
    assert.equal(agent.ends.accepted.server.length, 0)
    agent.send('000002 10 00000003 02ff')
    assert.equal(agent.ends.accepted.server[0]?.type, 2)
    assert.equal(agent.accepted().unread, 1)
  })

  test('ids may arrive out of order', () => {
    const agent = new RawAgent()
    agent.send('000004 12 00000007 00000001 000004 12 00000005 00000001')
    assert.equal(agent.ends.accepted.server.length, 2)
  })
})

describe('a session ends, with a GOAWAY that names the fault, when the peer', () => {
  const cases: { name: string; send: string; code: string; wire: string }[] = [
    {
      name: 'opens a stream with an id of ours',
      send: '000004 12 00000002 00000000',
      code: 'protocol_error',
      wire: '00000001',
    },
    {
      name: 'opens a stream twice',
      send: '000004 12 00000003 00000000 000004 12 00000003 00000000',
      code: 'protocol_error',
      wire: '00000001',
    },
    { name: 'gives zero credit', send: '000004 20 00000003 00000000', code: 'protocol_error', wire: '00000001' },
    {
      name: 'sends a reset of the wrong size',
      send: '000003 00 00000003 000000',
      code: 'frame_size_error',
      wire: '00000008',
    },
  ]
  for (const { name, send, code, wire } of cases) {
    test(name, () => {
      const agent = new RawAgent()
      const answer = agent.send(send)
      assert.match(answer, new RegExp(`^0000..30000000000000000[03]${wire}`))
      assert.ok(agent.ends.link.pipes.server.isEnded)
      assert.equal(agent.ends.closed.server.length, 1)
      assert.equal(agent.ends.closed.server[0]?.code, code)
      assert.equal(agent.ends.closed.server[0]?.side, 'peer')
      assert.equal(agent.ends.server.size, 0)
    })
  }

  test('sends too much before it is trusted', () => {
    const ends = new Ends({ server: { maxUntrustedBytes: 100 } })
    ends.link.pipes.agent.write(Buffer.alloc(101))
    ends.link.pipes.agent.deliver(101)
    assert.equal(ends.closed.server[0]?.code, 'enhance_your_calm')
  })

  test('causes resets that it does not read', () => {
    const agent = new RawAgent()
    const frame = (id: number): string => `00000110${id.toString(16).padStart(8, '0')}00`
    agent.ends.link.pipes.agent.write(
      hex(Array.from({ length: PENDING_RESETS + 1 }, (_, i) => frame(2 * i + 3)).join('')),
    )
    agent.ends.link.pipes.agent.deliver(Number.POSITIVE_INFINITY)
    assert.equal(agent.ends.closed.server[0]?.code, 'enhance_your_calm')
  })
})

test('a session that allows more pending resets sends them in several batches', () => {
  const count = 3 * PENDING_RESETS
  const ends = new Ends({ server: { maxPendingResets: count } })
  ends.server.adapt({ ...serverTraits(), maxStreams: count })
  const opened = Array.from({ length: count }, () => ends.server.open(typeHead(streamTypes.proxy)) as WireStream) // there is room
  ends.settle()
  assert.equal(ends.agent.size, count)
  for (const stream of opened) stream.reset()
  ends.settle()
  assert.equal(ends.agent.size, 0)
  assert.ok(!ends.server.isClosed && !ends.agent.isClosed)
})

describe('only the stream is reset when the peer', () => {
  test('sends more than the window, and later data on it is refused', () => {
    const agent = new RawAgent({ userAgent: 'ngrok-rust/0.18.0' })
    agent.send('000004 12 00000003 00000000')
    const heard = new Heard()
    agent.accepted().attach(heard)
    assert.equal(agent.send('040001 10 00000003 00'), frames('000000 11 00000003', '000004 00 00000003 00000003'))
    assert.equal(heard.closes[0]?.code, 'flow_control_error')
    // The rest of that frame, then one more.
    agent.ends.link.pipes.agent.write(Buffer.alloc(0x40000))
    agent.ends.link.pipes.agent.deliver(Number.POSITIVE_INFINITY)
    assert.equal(agent.send('000001 10 00000003 00').slice(-24), frames('000004 00 00000003 00000004'))
    assert.equal(heard.bytes.length, 0)
    assert.ok(!agent.ends.server.isClosed)
  })

  test('sends on a stream that it has ended', () => {
    const agent = new RawAgent()
    agent.send('000004 12 00000003 00000000 000000 11 00000003')
    assert.equal(agent.send('000001 10 00000003 00').slice(-24), frames('000004 00 00000003 00000004'))
  })

  test('ends a stream before its type is complete', () => {
    const agent = new RawAgent()
    assert.equal(agent.send('000002 13 00000003 0000').slice(-24), frames('000004 00 00000003 00000001'))
    assert.equal(agent.ends.server.size, 0)
  })

  test('opens more streams than it may', () => {
    const agent = new RawAgent({ server: { maxAccepted: 1 } })
    agent.send('000004 12 00000003 00000000')
    assert.equal(agent.send('000004 12 00000005 00000000'), frames('000000 11 00000005', '000004 00 00000005 00000009'))
    agent.accepted().reset()
    agent.read()
    agent.send('000004 12 00000007 00000000')
    assert.equal(agent.ends.accepted.server.length, 2)
  })
})

describe('has no effect:', () => {
  const cases = {
    'an end of an unknown stream': '000000 11 00000009',
    'credit for an unknown stream': '000004 20 00000009 00000001',
    'a reset of an unknown stream': '000004 00 00000009 00000004',
    'a frame of an unknown type': '000002 f0 00000009 0000',
    'empty data': '000004 12 00000003 00000000 000000 10 00000003',
    'repeated ends': '000004 12 00000003 00000000 000000 11 00000003 000000 11 00000003 000000 11 00000003',
  }
  for (const [name, send] of Object.entries(cases)) {
    test(name, () => {
      const agent = new RawAgent()
      assert.equal(agent.send(send), '')
      assert.ok(!agent.ends.server.isClosed)
    })
  }

  test('data for an unknown stream, except for one reset a turn', () => {
    const twice = '000001 10 00000009 00 000001 10 00000009 00'
    assert.equal(new RawAgent().send(twice), frames('000004 00 00000009 00000004'))
  })
})

describe('ending', () => {
  test('each direction ends on its own, and the stream is closed after both', () => {
    const ends = new Ends()
    const [ours, theirs] = [new Heard(), new Heard()]
    const stream = opened(ends, 'agent')
    stream.attach(ours)
    ends.settle()
    const accepted = ends.accepted.server[0]?.stream ?? assert.fail()
    accepted.attach(theirs)
    stream.end(Buffer.from('up'))
    ends.settle()
    assert.deepEqual([theirs.bytes.toString(), theirs.ends, theirs.closes.length], ['up', 1, 0])
    accepted.end(Buffer.from('down'))
    ends.settle()
    assert.deepEqual([ours.bytes.toString(), ours.ends], ['down', 1])
    assert.deepEqual([ours.closes, theirs.closes], [[undefined], [undefined]])
    assert.deepEqual([ends.agent.size, ends.server.size], [0, 0])
  })

  test('data that was ended before a reset can still be read', () => {
    const agent = new RawAgent()
    agent.send('000006 12 00000003 00000000 6869 000000 11 00000003 000004 00 00000003 00000004')
    const heard = new Heard()
    agent.accepted().attach(heard)
    assert.deepEqual([heard.bytes.toString(), heard.ends, heard.closes[0]?.code], ['hi', 1, 'stream_closed'])
    assert.equal(agent.ends.server.size, 0)
  })

  test('data that was not ended before a reset is lost at once', () => {
    const agent = new RawAgent()
    agent.send('000006 12 00000003 00000000 6869 000004 00 00000003 00000006')
    const heard = new Heard()
    agent.accepted().attach(heard)
    assert.deepEqual([heard.bytes.length, heard.ends, heard.closes[0]?.code], [0, 0, 'stream_cancelled'])
  })

  test('a closed stream is forgotten, and later data for it is refused', () => {
    const agent = new RawAgent()
    agent.send('000004 12 00000003 00000000')
    const stream = agent.accepted()
    stream.write(Buffer.from('{}'))
    stream.close()
    assert.equal(agent.read(), frames('000002 11 00000003 7b7d'))
    assert.equal(agent.ends.server.size, 0)
    assert.equal(agent.send('000001 10 00000003 00'), frames('000004 00 00000003 00000004'))
  })

  test('a peer that has filled the window of a closed stream still gets its end', () => {
    const ends = new Ends()
    const stream = opened(ends, 'server')
    const heard = new Heard()
    stream.attach(heard)
    ends.settle()
    stream.write(Buffer.alloc(WINDOW_BYTES + 1))
    ends.turn('server')
    ends.accepted.agent[0]?.stream.close()
    ends.settle()
    stream.end()
    ends.settle()
    assert.deepEqual([heard.ends, heard.closes.length, ends.server.size, ends.agent.size], [1, 1, 0, 0])
  })

  test('a peer without a window learns of the close of a stream whose other direction we had ended', () => {
    const ends = new Ends()
    const stream = opened(ends, 'server')
    stream.attach(new Heard())
    stream.end()
    ends.settle()
    const far = ends.accepted.agent[0]?.stream ?? assert.fail()
    const heard = new Heard()
    far.attach(heard)
    far.write(Buffer.alloc(WINDOW_BYTES + 1))
    ends.turn('agent')
    ends.link.pipes.agent.deliver(Number.POSITIVE_INFINITY)
    stream.close()
    ends.settle()
    assert.deepEqual([heard.closes.length, ends.server.size, ends.agent.size], [1, 0, 0])
  })

  for (const [userAgent, expected] of [
    ['ngrok-javascript/1.7.0 ngrok-rust/0.18.0', frames('000000 11 00000002', '000004 00 00000002 00000006')],
    ['ngrok-go/1.13.0', frames('000000 11 00000002', '000004 00 00000002 00000006')],
  ] as const) {
    test(`giving up a stream to ${userAgent} sends an end before the reset`, () => {
      const agent = new RawAgent({ userAgent })
      const stream = opened(agent.ends, 'server')
      agent.read()
      stream.reset()
      assert.equal(agent.read(), expected)
    })
  }

  test('giving up a stream to our own agent sends only a reset, so that a cut is not mistaken for an end', () => {
    const ends = new Ends()
    ends.server.adapt(peerTraits('postern/1', { agreedWindow: 2 * WINDOW_BYTES }))
    const stream = opened(ends, 'server')
    ends.turn('server')
    ends.link.pipes.server.log.length = 0
    stream.reset()
    ends.turn('server')
    assert.equal(Buffer.concat(ends.link.pipes.server.log).toString('hex'), frames('000004 00 00000002 00000006'))
  })

  test('a stream that is given up before it was sent sends nothing', () => {
    const agent = new RawAgent()
    opened(agent.ends, 'server').reset()
    assert.equal(agent.read(), '')
    assert.equal(agent.ends.server.size, 0)
  })

  test('a GOAWAY ends both sessions and all their streams', () => {
    const ends = new Ends()
    const heard = new Heard()
    opened(ends, 'agent').attach(heard)
    ends.settle()
    ends.server.close('no_error', 'bye')
    ends.settle()
    assert.deepEqual([ends.closed.server, ends.closed.agent], [[undefined], [undefined]])
    assert.equal(heard.closes[0]?.code, 'session_closed')
    assert.deepEqual([ends.agent.size, ends.server.size], [0, 0])
    assert.ok(ends.agent.open(typeHead(streamTypes.auth)) instanceof WireError)
  })

  test('what was written before a session is closed is still sent', () => {
    const agent = new RawAgent()
    agent.send('000004 12 00000003 00000000')
    agent.accepted().write(Buffer.from('{}'))
    agent.ends.server.close()
    assert.equal(agent.read(), frames('000002 10 00000003 7b7d', '000008 30 00000000 00000003 00000000'))
  })

  test('the loss of the connection is reported once, to the session and to its streams', () => {
    const ends = new Ends()
    const heard = new Heard()
    opened(ends, 'agent').attach(heard)
    ends.link.pipes.server.isEnded = true
    ends.settle()
    ends.settle()
    assert.deepEqual(
      ends.closed.agent.map((error) => error?.code),
      ['peer_eof'],
    )
    assert.deepEqual(
      heard.closes.map((error) => error?.code),
      ['peer_eof'],
    )
  })
})

describe('to agents that wait for acknowledgements', () => {
  const nothing = frames('000004 20 7ffffffe 00000001')

  test('a turn that received something and sends nothing else sends a frame without effect', () => {
    const agent = new RawAgent({ userAgent: 'ngrok-rust/0.18.0' })
    assert.equal(agent.send('000004 12 00000003 00000000 000000 10 00000003'), nothing)
    assert.equal(agent.read(), '')
  })

  test('a turn that sends something does not', () => {
    const agent = new RawAgent({ userAgent: 'ngrok-rust/0.18.0' })
    agent.send('000004 12 00000003 00000000')
    agent.accepted().write(Buffer.from('x'))
    assert.equal(agent.send('000001 10 00000003 00'), frames('000001 10 00000003 78'))
  })

  test('the number of streams stays below the one that crashes them', () => {
    const ends = new Ends()
    ends.server.adapt(peerTraits('ngrok-rust/0.18.0'))
    for (let i = 0; i < 480; i++) opened(ends, 'server')
    const refused = ends.server.open(typeHead(streamTypes.proxy))
    assert.ok(refused instanceof WireError && refused.code === 'too_many_streams')
  })
})

test('a stream that echoes what it reads is closed once the peer is gone, even if it had to wait', () => {
  const agent = new RawAgent()
  agent.send('000004 12 00000003 00000000')
  const stream = agent.accepted()
  const heard = new Heard()
  stream.attach({
    data(chunk) {
      heard.data(chunk)
      if (!stream.write(chunk)) stream.pause()
    },
    end: () => heard.end(),
    drain: () => stream.resume(),
    closed: (error) => heard.closed(error),
  })
  for (let i = 0; i < 27; i++) agent.send(`004000 10 00000003 ${'00'.repeat(0x4000)}`)
  assert.ok(stream.unread > 0)
  agent.send('000000 11 00000003 000004 00 00000003 00000004')
  assert.deepEqual([heard.bytes.length, heard.ends, heard.closes.length], [27 * 0x4000, 1, 1])
  assert.equal(agent.ends.server.size, 0)
})

test('windows between our own ends grow with the round trip and shrink when the stream becomes slow', () => {
  const agreedWindow = 8 * WINDOW_BYTES
  const ends = new Ends()
  ends.server.adapt(peerTraits('postern/1', { agreedWindow }))
  ends.agent.adapt(serverTraits({ agreedWindow }))
  ends.agent.roundTripMs = 100
  const stream = opened(ends, 'server')
  ends.settle()
  const far = ends.accepted.agent[0]?.stream
  assert.ok(far instanceof MuxStream)
  far.attach(new Heard())
  for (let i = 0; i < 20; i++) {
    stream.write(Buffer.alloc(agreedWindow))
    ends.timeMs += 100
    ends.settle()
  }
  assert.equal(far.window.size, agreedWindow)
  for (let i = 0; i < 200; i++) {
    stream.write(Buffer.alloc(WINDOW_BYTES / 2))
    ends.timeMs += 10_000
    ends.settle()
  }
  assert.equal(far.window.size, WINDOW_BYTES)
  assert.equal(stream.unsent, 0)
  assert.deepEqual(ends.closed, { server: [], agent: [] })
})

describe('a handler that throws', () => {
  const throwing = { data() {}, end() {}, drain() {}, closed() {} }
  const cases: Record<string, Partial<Record<keyof typeof throwing, () => void>>> = {
    'on data': { data: () => assert.fail('on purpose') },
    'on the end': { end: () => assert.fail('on purpose') },
    'on the close': { closed: () => assert.fail('on purpose') },
  }
  for (const [name, bad] of Object.entries(cases)) {
    test(`${name} ends only its own stream`, () => {
      const agent = new RawAgent()
      agent.send('000004 12 00000003 00000000 000004 12 00000005 00000000')
      const other = new Heard()
      agent.accepted(0).attach({ ...throwing, ...bad })
      agent.accepted(1).attach(other)
      agent.accepted(0).end()
      agent.send('000001 11 00000003 00 000001 10 00000005 00')
      assert.equal(other.bytes.length, 1)
      assert.equal(agent.ends.server.size, 1)
      assert.ok(!agent.ends.server.isClosed)
    })
  }

  test('when a stream is opened ends the session with an error', () => {
    const agent = new RawAgent({ server: { onStream: () => assert.fail('on purpose') } })
    agent.send('000004 12 00000003 00000000')
    assert.equal(agent.ends.closed.server[0]?.code, 'internal_error')
    assert.equal(agent.ends.closed.server[0]?.side, 'us')
  })
})
