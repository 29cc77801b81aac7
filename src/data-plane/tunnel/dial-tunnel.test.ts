import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { peerTraits } from '../../link/wire/mux-peer.ts'
import { readProxyHeader } from '../../link/wire/proxy-header.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { Ends, Heard } from '../../link/wire/testing/test-link.ts'
import { RUST_STREAMS } from '../../link/wire/wire-bounds.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import { Dialler } from './dial-tunnel.ts'
import type { Tunnel } from './session-types.ts'

const visit: DialRequest = {
  tunnelId: 'tn_1',
  ip: '192.0.2.1',
  port: 4711,
  proto: 'https',
  edge: 'none',
  passthroughTls: false,
}

/** The dialler uses only the agent's id of a tunnel. */
const aTunnel = (wireId = 'mine'): Tunnel => ({ wireId }) as Tunnel

function session(userAgent: string) {
  const ends = new Ends()
  const traits = peerTraits(userAgent)
  ends.server.adapt(traits)
  return { ends, dialler: new Dialler(ends.server, traits, { now: () => ends.timeMs }) }
}

type Dialled = ReturnType<Dialler['open']>

function opened(result: Dialled): WireStream {
  if (result instanceof DialFault || result instanceof Promise) assert.fail('it was not opened at once')
  return result
}

function reason(result: Awaited<Dialled>): string {
  return result instanceof DialFault ? result.reason : 'none'
}

const rust = 'ngrok-javascript/1.7.0 ngrok-rust/0.18.0'

describe('a connection of a visitor', () => {
  test('begins with its whole head in one frame, and its bytes follow', () => {
    const { ends, dialler } = session('ours/1')
    const stream = opened(dialler.open(aTunnel(), { ...visit, ip: '2001:db8::1', edge: 'tls', passthroughTls: true }))
    stream.write(Buffer.from('hello'))
    ends.settle()
    const [first] = ends.link.pipes.server.log
    assert.equal(first?.subarray(0, 8).toString('hex').slice(6, 8), '12')
    const [accepted] = ends.accepted.agent
    assert.equal(accepted?.type, streamTypes.proxy)
    const heard = new Heard()
    readProxyHeader(accepted?.stream ?? assert.fail(), (header) => {
      assert.deepEqual(header, {
        id: 'mine',
        clientAddr: '[2001:db8::1]:4711',
        proto: 'https',
        edgeType: 'tls',
        passthroughTls: true,
        requestId: '',
      })
    })
    accepted?.stream.attach(heard)
    assert.equal(heard.bytes.toString(), 'hello')
  })

  test('is not opened through a session that is over', async () => {
    const { ends, dialler } = session('ours/1')
    ends.server.close()
    assert.equal(reason(await dialler.open(aTunnel(), visit)), 'offline')
  })

  test('is not opened beyond the limit of agents in Rust, and room is left for heartbeats and commands', () => {
    const { ends, dialler } = session(rust)
    const streams: WireStream[] = []
    for (;;) {
      const result = dialler.open(aTunnel(`t${streams.length % 20}`), visit)
      if (result instanceof DialFault) {
        assert.equal(result.reason, 'busy')
        break
      }
      streams.push(opened(result))
    }
    assert.equal(streams.length, RUST_STREAMS - 16)
    streams[0]?.reset()
    ends.settle()
    opened(dialler.open(aTunnel(), visit))
  })

  test('is not bound by that limit with other agents', () => {
    const { dialler } = session('ours/1')
    const tunnel = aTunnel()
    for (let i = 0; i < 1000; i++) opened(dialler.open(tunnel, visit))
  })
})

describe('connections that an application behind a Rust agent does not accept', () => {
  /** Opens as many as may wait at the agent, which reads only their heads. */
  function knock() {
    const { ends, dialler } = session(rust)
    const tunnel = aTunnel()
    const streams = Array.from({ length: 60 }, () => opened(dialler.open(tunnel, visit)))
    for (const stream of streams) stream.write(Buffer.alloc(200_000))
    ends.settle()
    for (const { stream } of ends.accepted.agent) readProxyHeader(stream, () => {})
    ends.settle()
    return { ends, dialler, tunnel }
  }

  test('keep others of the same tunnel waiting, for a second, and those of other tunnels not at all', async () => {
    const { ends, dialler, tunnel } = knock()
    const waiting = dialler.open(tunnel, visit)
    assert.ok(waiting instanceof Promise)
    opened(dialler.open(aTunnel('other'), visit))
    ends.settle()
    assert.equal(ends.accepted.agent.length, 61)
    ends.timeMs += 1000
    assert.equal(reason(await waiting), 'busy')
  })

  const takes: Record<string, (stream: WireStream) => void> = {
    closed: (stream) => stream.close(),
    answered: (stream) => stream.write(Buffer.from('x')),
    ended: (stream) => stream.end(),
    'read from': (stream) => stream.attach(new Heard()),
  }
  for (const [how, take] of Object.entries(takes)) {
    test(`make room when one of them is ${how}`, async () => {
      const { ends, dialler, tunnel } = knock()
      const waiting = dialler.open(tunnel, visit)
      const behind = dialler.open(tunnel, visit)
      take(ends.accepted.agent[7]?.stream ?? assert.fail())
      ends.settle()
      opened(await waiting)
      ends.timeMs += 1000
      assert.equal(reason(await behind), 'busy')
    })
  }

  test('let a burst through as fast as it is accepted, in order', async () => {
    const { ends, dialler } = session(rust)
    const tunnel = aTunnel()
    const order: number[] = []
    const all = Array.from({ length: 300 }, async (_, i) => {
      const stream = await dialler.open(tunnel, visit)
      order.push(i)
      ends.settle()
      ends.accepted.agent.at(-1)?.stream.write(Buffer.from('taken'))
      ends.settle()
      return stream
    })
    for (const stream of await Promise.all(all)) assert.equal(reason(stream), 'none')
    assert.deepEqual(
      order,
      [...order].sort((a, b) => a - b),
    )
    assert.equal(ends.accepted.agent.length, 300)
  })

  test('are bounded here too', async () => {
    const { ends, dialler, tunnel } = knock()
    const waiting = Array.from({ length: 1000 }, () => dialler.open(tunnel, visit))
    assert.equal(reason(await dialler.open(tunnel, visit)), 'busy')
    ends.server.close()
    for (const one of waiting) assert.equal(reason(await one), 'offline')
  })
})
