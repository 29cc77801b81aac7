import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createLog } from '../../lib/log/create-log.ts'
import { BindRefusal } from '../../model/endpoint.ts'
import { Refusal } from '../../model/errors.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { errorOf, plainError } from '../../model/plain-error.ts'
import { CallLink } from './call-link.ts'
import { type Channel, channelPair, socketChannel } from './plane-channel.ts'
import { socketPair } from './testing/test-sockets.ts'

const lines: string[] = []
const log = createLog({ level: 'error', format: 'json', destination: { write: (line) => lines.push(line) } })

type Far = {
  echo(value: unknown): unknown
  later(at: { readonly turns: number; readonly value: number }): Promise<number>
  fail(kind: string): never
  note(value: number): void
  hang(nothing: null): Promise<void>
  odd(nothing: null): unknown
}

const errors: Record<string, () => unknown> = {
  refusal: () => new Refusal('BAD_POLICY', 'no', { field: 'a.b', reason: 'word', headers: { allow: 'GET' } }),
  bind: () => new BindRefusal(334, 'taken', { isTaken: true }),
  plain: () => new TypeError('wrong'),
  coded: () => Object.assign(new Error('gone'), { code: 'ECONNRESET' }),
  uncoded: () => Object.assign(new Error('nothing'), { code: undefined }),
  text: () => 'only a text',
  nothing: () => undefined,
  textless: () => Object.create(null),
  hostile: () => Object.assign(new Error('x'), { name: () => {}, message: Symbol('m'), code: Object.create(null) }),
}

function far(noted: number[] = []): Far {
  return {
    echo: (value) => value,
    async later({ turns, value }) {
      for (let i = 0; i < turns; i++) await new Promise(setImmediate)
      return value
    },
    fail(kind) {
      throw errors[kind]?.()
    },
    note: (value) => void noted.push(value),
    hang: () => new Promise(() => {}),
    odd: () => () => 'a function cannot cross',
  }
}

function linked(ours = far(), [a, b]: readonly [Channel, Channel] = channelPair()) {
  const asking = new CallLink<Far, Far>(a, far(), { log })
  const answering = new CallLink<Far, Far>(b, ours, { log })
  return { asking, answering }
}

describe('a link', () => {
  test('gives each of many calls its own answer, whatever the order of the answers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 6 }), { maxLength: 40 }), async (turns) => {
        const { asking, answering } = linked()
        const both = [asking, answering].map((link) =>
          Promise.all(turns.map((each, value) => link.ask('later', { turns: each, value }))),
        )
        for (const answers of await Promise.all(both)) {
          assert.deepEqual(
            answers,
            turns.map((_, i) => i),
          )
        }
        asking.close()
        await answering.closed
      }),
      { numRuns: 30 },
    )
  })

  test('begins calls in the order in which they were sent', async () => {
    const noted: number[] = []
    const { asking } = linked(far(noted), (await socketPair()).map((each) => socketChannel(each)) as [Channel, Channel])
    const answers: Promise<unknown>[] = []
    for (let i = 0; i < 500; i++) {
      if (i % 7 === 0) answers.push(asking.ask('note', i))
      else asking.tell('note', i)
    }
    await asking.ask('echo', null)
    assert.deepEqual(
      noted,
      Array.from({ length: 500 }, (_, i) => i),
    )
    await Promise.all(answers)
    asking.close()
    await asking.closed
  })

  test('answers with undefined, null and errors as values', async () => {
    const { asking } = linked()
    for (const value of [undefined, null, 0, '', [1, 2, 3], { kind: 'error', message: 'a value' }]) {
      assert.deepEqual(await asking.ask('echo', value), value)
    }
    asking.close()
  })

  test('carries what was thrown', async () => {
    const { asking } = linked()
    await assert.rejects(asking.ask('fail', 'refusal'), (error) => {
      assert.ok(error instanceof Refusal)
      const { code, status, field, reason, headers, message } = error
      assert.deepEqual(
        { code, status, field, reason, headers, message },
        { code: 'BAD_POLICY', status: 400, field: 'a.b', reason: 'word', headers: { allow: 'GET' }, message: 'no' },
      )
      return true
    })
    await assert.rejects(asking.ask('fail', 'bind'), (error) => {
      assert.ok(error instanceof BindRefusal)
      assert.deepEqual([error.ngrok, error.isTaken, error.message], [334, true, 'taken'])
      return true
    })
    await assert.rejects(asking.ask('fail', 'plain'), { name: 'TypeError', message: 'wrong' })
    await assert.rejects(asking.ask('fail', 'coded'), { message: 'gone', code: 'ECONNRESET' })
    await assert.rejects(asking.ask('fail', 'uncoded'), (error: Error) => !('code' in error))
    await assert.rejects(asking.ask('fail', 'text'), { message: 'only a text' })
    for (const kind of ['nothing', 'textless', 'hostile']) await assert.rejects(asking.ask('fail', kind), Error)
    // The link still works.
    assert.equal(await asking.ask('echo', 1), 1)
    asking.close()
  })

  test('rejects a call that cannot be sent, and an answer that cannot', async () => {
    const { asking } = linked()
    await assert.rejects(
      asking.ask('echo', () => {}),
      /could not be cloned/,
    )
    await assert.rejects(asking.ask('odd', null), /could not be cloned/)
    assert.equal(await asking.ask('echo', 'on'), 'on')
    asking.close()
  })

  test('knows only the calls that were given to it', async () => {
    const { asking } = linked()
    const loose = asking as unknown as CallLink<Record<string, (given: null) => void>, Far>
    for (const name of ['unheard', 'toString', '__proto__', 'constructor']) {
      await assert.rejects(loose.ask(name, null), /does not know the call/)
    }
    lines.length = 0
    loose.tell('unheard', null)
    await asking.ask('echo', 1)
    assert.equal(lines.length, 1)
    asking.close()
  })

  test('logs what a handler throws that was only told', async () => {
    const { asking } = linked()
    lines.length = 0
    asking.tell('fail', 'plain')
    await asking.ask('echo', 1)
    assert.match(lines.join(''), /wrong/)
    asking.close()
  })

  test('gives up a call after its time, and drops the late answer', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const answer = Promise.withResolvers<number>()
    const { asking } = linked({ ...far(), later: () => answer.promise })
    const late = asking.ask('later', { turns: 0, value: 1 }, { withinMs: 50 })
    const usual = asking.ask('hang', null)
    t.mock.timers.tick(50)
    await assert.rejects(late, (error) => error instanceof LinkFault && error.reason === 'timeout')
    answer.resolve(1)
    assert.equal(await asking.ask('echo', 2), 2)
    t.mock.timers.tick(30_000)
    await assert.rejects(usual, { reason: 'timeout' })
    asking.close()
  })

  test('rejects calls that wait when either side closes, and those after', async () => {
    for (const side of ['asking', 'answering'] as const) {
      const ends = linked()
      const waiting = [ends.asking.ask('hang', null), ends.answering.ask('hang', null)]
      ends[side].close()
      for (const each of waiting) await assert.rejects(each, { name: 'LinkFault', reason: 'closed' })
      for (const end of [ends.asking, ends.answering]) {
        await end.closed
        assert.ok(end.isClosed)
        await assert.rejects(end.ask('echo', 1), { reason: 'closed' })
        end.tell('note', 1)
        end.close()
      }
    }
  })

  test('leaves no timer, however a call ends', async (t) => {
    const running = new Set<unknown>()
    const [set, clear] = [globalThis.setTimeout, globalThis.clearTimeout]
    t.mock.method(globalThis, 'setTimeout', (...given: Parameters<typeof setTimeout>) => {
      const timer = set(...given)
      running.add(timer)
      return timer
    })
    t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      running.delete(timer)
      clear(timer)
    })
    const { asking } = linked()
    const ends = [asking.ask('echo', 1), asking.ask('fail', 'plain'), asking.ask('echo', () => {})]
    await Promise.allSettled(ends)
    const waiting = asking.ask('hang', null)
    asking.close()
    await Promise.allSettled([waiting])
    assert.equal(running.size, 0)
  })

  test('survives malformed messages', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(fc.jsonValue(), fc.array(oddPart(), { maxLength: 4 }))), async (messages) => {
        const [a, b] = channelPair()
        const link = new CallLink<Far, Far>(a, far(), { log })
        const asked = link.ask('echo', 'real')
        b.open({
          message(message) {
            const [id, name, argument] = message as [number, string, unknown]
            if (name === 'echo' && argument === 'real') b.send([-id, 'answer'])
          },
          closed() {},
        })
        assert.equal(await asked, 'answer')
        for (const message of messages) b.send(message)
        await new Promise(setImmediate)
        assert.equal(link.isClosed, false)
        link.close()
        await link.closed
      }),
      { numRuns: 200 },
    )
  })

  test('a malformed answer leaves the call waiting until its time is over', async () => {
    const [a, b] = channelPair()
    const link = new CallLink<Far, Far>(a, far(), { log })
    const asked = link.ask('echo', 1)
    b.open({ message() {}, closed() {} })
    for (const odd of [[-1], [-1, null, null], [-1, null, 'text'], [-1, 1, 2, 3], [-1.5, 2]]) b.send(odd)
    b.send([-1, 'the answer'])
    assert.equal(await asked, 'the answer')
    link.close()
  })

  test('answers nothing while it has no calls yet', async () => {
    const [a, b] = channelPair()
    let ours: Far | undefined
    const asking = new CallLink<Far, Far>(a, far(), { log })
    new CallLink<Far, Far>(b, () => ours, { log })
    await assert.rejects(asking.ask('echo', 1), /does not know the call echo/)
    ours = far()
    assert.equal(await asking.ask('echo', 1), 1)
    asking.close()
  })
})

/** Parts of messages that are nearly valid. */
function oddPart(): fc.Arbitrary<unknown> {
  const texts = fc.constantFrom('echo', 'fail', 'note', 'plain', '__proto__')
  return fc.oneof(fc.integer({ min: -3, max: 3 }), texts, fc.constant(null), fc.constant(undefined), fc.double())
}

test('errors of every kind can be sent, and crossing twice changes nothing more', () => {
  fc.assert(
    fc.property(fc.anything(), (thrown) => {
      const once = plainError(thrown)
      assert.deepEqual(plainError(errorOf(structuredClone(once))).message, once.message)
    }),
  )
  for (const make of Object.values(errors)) {
    const once = plainError(make())
    const again = plainError(errorOf(structuredClone(once)))
    assert.deepEqual({ name: 'Error', ...again }, { name: 'Error', ...once })
  }
})

test('a refusal that only a newer version knows becomes an internal error with its text', () => {
  const error = errorOf({ kind: 'refusal', code: 'FROM_THE_FUTURE', message: 'what it says' })
  assert.ok(error instanceof Refusal)
  assert.deepEqual([error.code, error.status, error.message], ['INTERNAL', 500, 'what it says'])
  const inherited = errorOf({ kind: 'refusal', code: 'toString', message: 'x' })
  assert.ok(inherited instanceof Refusal && inherited.code === 'INTERNAL')
})
