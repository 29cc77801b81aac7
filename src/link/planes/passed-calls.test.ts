import assert from 'node:assert/strict'
import { type Duplex, duplexPair } from 'node:stream'
import { after, describe, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import { NodeListener } from '../../data-plane/remote/node-listener.ts'
import { Near } from '../../data-plane/remote/testing/test-near.ts'
import { newAuthority, TestNodes } from '../../data-plane/remote/testing/test-nodes.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { LinkFault } from '../../model/link-fault.ts'
import type { Mux } from '../wire/mux.ts'
import { typeHead } from '../wire/stream-types.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { connectNode } from './connect-node.ts'
import { CALL_BYTES, CALL_TYPE, NodeCalls } from './node-calls.ts'
import { createNodeIdentity, type NodePlane, tlsOptions } from './node-identity.ts'
import { NodeLinks } from './node-links.ts'
import { AnsweredCalls, PassedCalls } from './passed-calls.ts'
import { relaySession } from './relay-session.ts'

const log = createLog({ level: 'silent' })
const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
})

type NodeOptions = NonNullable<Parameters<TestNodes['start']>[1]>

/** The node `b`, which is called, and those that call it. */
async function called(by: readonly string[], options: NodeOptions) {
  const nodes = new TestNodes()
  closers.push(() => nodes.close())
  const b = await nodes.start('b', options)
  const callers = await Promise.all(by.map((id) => nodes.start(id, { planeId: 'control' })))
  return { nodes, b, callers }
}

/** A session of a node that may break the rules, and the streams of its calls. */
async function hostile(nodes: TestNodes, port: number): Promise<{ mux: Mux; call: (text: string) => WireStream }> {
  const identity = createNodeIdentity({ nodeId: 'h', planeId: 'control' }, nodes.authority)
  const address = { host: '127.0.0.1', port }
  const { signal } = new AbortController()
  const { socket } = await connectNode({ identity, nodeId: 'b', address, withinMs: 10_000, signal })
  const mux = relaySession(socket, { opens: true, isFar: true, onStream() {}, onClosed() {} })
  closers.push(() => mux.close())
  const open = (text: string) => mux.open(Buffer.concat([typeHead(CALL_TYPE), Buffer.from(text)])) as WireStream // there is room
  return { mux, call: open }
}

function isFault(reason: LinkFault['reason'], message: RegExp): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof LinkFault)
    assert.equal(error.reason, reason)
    assert.match(error.message, message)
    return true
  }
}

const patient = { withinMs: 10_000 }

describe('calls of one node', () => {
  for (const where of ['passed', 'calls'] as const) {
    const end = where === 'passed' ? 'data' : 'control'
    test(`beyond its share at the ${end} plane are refused, and do not keep those of another waiting`, async () => {
      const answer = Promise.withResolvers<number>()
      const { callers } = await called(['a', 'c'], { answer: () => answer.promise, [where]: { maxCalls: 2 } })
      const [a, c] = callers as [(typeof callers)[0], (typeof callers)[0]] // as many as were asked for
      const first = [1, 2].map((n) => a.links.call('b', n, patient))
      await assert.rejects(a.links.call('b', 3, patient), isFault('failed', /too many calls at once/))
      const other = c.links.call('b', 1, patient)
      answer.resolve(7)
      assert.deepEqual(await Promise.all([...first, other]), [7, 7, 7])
      assert.equal(await a.links.call('b', 4, patient), 7)
    })
  }

  test('hold their places while it does not read the answers, which wait in its share of memory', async () => {
    let asked = 0
    const { nodes, b } = await called([], {
      answer: async () => {
        asked++
        return 'x'.repeat(CALL_BYTES - 100)
      },
      passed: { maxCalls: 2 },
    })
    const { call } = await hostile(nodes, b.port)
    const kept = [call('{"ask":1}'), call('{"ask":2}')]
    await until('both are answered', () => asked === 2)
    const refused = new Near(call('{"ask":3}'))
    await until('it is refused', () => refused.ends > 0)
    assert.match(refused.bytes.toString(), /too many calls at once/)
    for (const stream of kept) stream.reset()
    await until('another is answered', async () => {
      const near = new Near(call('{"ask":4}'))
      await until('it is over', () => near.ends > 0)
      return near.bytes.length > CALL_BYTES / 2
    })
    assert.equal(asked, 3)
  })

  test('end when it neither asks nor ends for long', async () => {
    const { nodes, b } = await called([], { passed: { idleMs: 30 } })
    const { call } = await hostile(nodes, b.port)
    for (const text of ['', '{"ask":', '{"ask":1}']) {
      const near = new Near(call(text))
      await until(`${text} is over`, () => near.closes.length === 1)
    }
    assert.equal(b.listener.links, 1)
  })
})

describe('a control process that is replaced', () => {
  /** A data plane and its control process, of which there may be none. */
  const plane = () => {
    const at: { control: AnsweredCalls | undefined; tries: number } = { control: undefined, tries: 0 }
    const connect = (): Duplex => {
      at.tries++
      const [ours, theirs] = duplexPair()
      if (at.control) at.control.take(theirs)
      else ours.destroy()
      return ours
    }
    const passed = new PassedCalls({ connect })
    closers.push(() => passed.close())
    return { at, passed }
  }

  test('leaves calls to its successor, which answers those that it had not', async () => {
    const { at, passed } = plane()
    const { callers } = await called(['a'], { listener: { answer: (stream, from) => passed.accept(stream, from) } })
    const former = { asked: 0 }
    const first = new AnsweredCalls({ log, answer: () => new Promise(() => former.asked++) })
    at.control = first
    const value = callers[0]?.links.call('b', 'again', patient)
    await until('it is asked', () => former.asked === 1)
    at.control = undefined
    first.close()
    await until('it is asked again, in vain', () => at.tries > 2)
    const heard: NodePlane[] = []
    at.control = new AnsweredCalls({
      log,
      answer: async (from, asked) => {
        heard.push(from)
        return asked
      },
    })
    closers.push(() => at.control?.close())
    assert.equal(await value, 'again')
    assert.deepEqual(heard, [{ nodeId: 'a', planeId: 'control' }])
  })

  test('and does not come back is a fault in time', async () => {
    const { passed } = plane()
    const { callers } = await called(['a'], { listener: { answer: (stream, from) => passed.accept(stream, from) } })
    const asked = performance.now()
    const call = callers[0]?.links.call('b', 1, { withinMs: 300 })
    // The last try breaks, or has no time left.
    await assert.rejects(call ?? assert.fail(), /no answer/)
    assert.ok(performance.now() - asked < 5000)
  })
})

test('a node of the version before, whose data plane reads the calls itself, is called and calls alike', async () => {
  const nodes = new TestNodes()
  closers.push(() => nodes.close())
  const calls = new NodeCalls({ log, answer: async ({ planeId }, value) => [planeId, value] })
  const former = await nodes.start('former', { listener: { answer: (stream, from) => calls.accept(stream, from) } })
  const latter = await nodes.start('latter', {
    planeId: 'control',
    answer: async ({ planeId }, value) => [planeId, value],
  })
  assert.deepEqual(await latter.links.call('former', 'hello', patient), ['control', 'hello'])
  assert.deepEqual(await former.links.call('latter', 'hello', patient), ['w1', 'hello'])
})

test('nobody calls without the certificate of a node', async () => {
  const authority = newAuthority()
  let asked = 0
  const passed = new PassedCalls({ connect: () => assert.fail('it was passed on') })
  const listener = new NodeListener({
    identity: createNodeIdentity({ nodeId: 'b', planeId: 'w1' }, authority),
    dial: () => assert.fail('it was dialled'),
    serves: () => assert.fail('it was asked for its places'),
    answer: (stream, from) => {
      asked++
      passed.accept(stream, from)
    },
    log,
  })
  closers.push(() => listener.close())
  const { port } = await listener.listen({ host: '127.0.0.1', port: 0 })
  const { certPem: ca } = authority
  const ofOther = newAuthority().issueMember('urn:postern:relay:a:control')
  const strangers = {
    'no certificate': tlsOptions({ ca }),
    'that of a host': tlsOptions({ ...authority.issue(['app.example.com']), ca }),
    'that of another authority': tlsOptions({ ...ofOther, ca }),
  }
  for (const [name, { linkTls }] of Object.entries(strangers)) {
    const identity = { linkTls }
    const links = new NodeLinks({ identity, log, addressOf: () => ({ host: '127.0.0.1', port }) })
    await assert.rejects(links.call('b', 1, { withinMs: 300 }), LinkFault, name)
    links.close()
  }
  assert.equal(asked, 0)
})
