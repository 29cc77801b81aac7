import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, test } from 'node:test'
import { AgentFault } from './agent-fault.ts'
import { connectFirst } from './connect-first.ts'
import { parseServer } from './server-address.ts'
import { until } from './testing/test-agent.ts'
import { TestTimers } from './testing/test-timers.ts'

const servers = ['a:1', 'b:1', 'c:1'].map(parseServer)

class TestSocket extends PassThrough {
  readonly host: string

  constructor(host: string) {
    super()
    this.host = host
  }
}

/** Attempts at addresses that do not respond until the test says so. */
function attempts() {
  const timers = new TestTimers()
  const dials = new Map<string, PromiseWithResolvers<TestSocket> & { readonly signal: AbortSignal }>()
  const greetings = new Map<string, PromiseWithResolvers<string>>()
  const connecting = connectFirst(servers, {
    timers,
    dial: ({ host }, signal) => {
      const dial = { ...Promise.withResolvers<TestSocket>(), signal }
      dials.set(host, dial)
      return dial.promise
    },
    greet: (_, { host }) => {
      const greeting = Promise.withResolvers<string>()
      greetings.set(host, greeting)
      return greeting.promise
    },
  })
  connecting.catch(() => {})
  const answers = (host: string): TestSocket => {
    const socket = new TestSocket(host)
    dials.get(host)?.resolve(socket)
    return socket
  }
  return { timers, connecting, dials, greetings, answers }
}

const refused = (code: string) => new AgentFault('refused', 'no', { serverCode: code })
const away = (message: string) => new AgentFault('unreachable', message)

describe('connecting to the first of several addresses', () => {
  const faults = { away: away('away'), unknown: new AgentFault('untrusted', 'unknown') }
  for (const [name, fault] of Object.entries(faults)) {
    test(`tries the next at once if the first is ${name}`, async () => {
      const { connecting, dials, greetings, answers, timers } = attempts()
      dials.get('a')?.reject(fault)
      await until(() => dials.size === 2)
      answers('b')
      await until(() => greetings.has('b'))
      greetings.get('b')?.resolve('welcome')
      assert.equal(await connecting, 'welcome')
      assert.deepEqual([[...dials.keys()], timers.waiting], [['a', 'b'], 0])
    })
  }

  test('tries the next if the first is shutting down', async () => {
    const { connecting, dials, greetings, answers } = attempts()
    answers('a')
    await until(() => greetings.has('a'))
    greetings.get('a')?.reject(refused('ERR_NGROK_803'))
    await until(() => dials.size === 2)
    answers('b')
    await until(() => greetings.has('b'))
    greetings.get('b')?.resolve('welcome')
    assert.equal(await connecting, 'welcome')
  })

  test('tries the next soon while one does not respond, and closes connections that came too late', async () => {
    const { connecting, timers, dials, greetings, answers } = attempts()
    timers.pass(499)
    assert.deepEqual([...dials.keys()], ['a'])
    timers.pass(1)
    await until(() => dials.size === 2)
    answers('b')
    await until(() => greetings.has('b'))
    greetings.get('b')?.resolve('welcome')
    assert.equal(await connecting, 'welcome')
    assert.deepEqual([dials.get('a')?.signal.aborted, timers.waiting], [true, 0])
    const late = answers('a')
    await until(() => late.destroyed)
  })

  test('authenticates over one connection at a time, and over no other once one succeeded', async () => {
    const { connecting, timers, dials, greetings, answers } = attempts()
    timers.pass(500)
    await until(() => dials.size === 2)
    answers('b')
    await until(() => greetings.has('b'))
    const first = answers('a')
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([...greetings.keys()], ['b'])
    greetings.get('b')?.resolve('welcome')
    assert.equal(await connecting, 'welcome')
    assert.deepEqual([[...greetings.keys()], first.destroyed], [['b'], true])
  })

  test('uses a waiting connection when the other is refused', async () => {
    const { connecting, timers, dials, greetings, answers } = attempts()
    timers.pass(500)
    await until(() => dials.size === 2)
    answers('b')
    answers('a')
    await until(() => greetings.has('b'))
    greetings.get('b')?.reject(away('gone'))
    await until(() => greetings.has('a'))
    greetings.get('a')?.resolve('welcome')
    assert.equal(await connecting, 'welcome')
  })

  test('does not use a connection that broke while it waited', async () => {
    const { connecting, timers, dials, greetings, answers } = attempts()
    timers.pass(500)
    await until(() => dials.size === 2)
    answers('b')
    await until(() => greetings.has('b'))
    const broken = answers('a')
    await new Promise((resolve) => setImmediate(resolve))
    broken.destroy(new Error('read ECONNRESET'))
    await new Promise((resolve) => setImmediate(resolve))
    greetings.get('b')?.reject(away('gone'))
    await until(() => dials.size === 3)
    assert.ok(!greetings.has('a'))
    dials.get('c')?.reject(away('c'))
    await assert.rejects(connecting, { message: 'a:1 closed the connection' })
  })

  test('ends when an authtoken is refused permanently', async () => {
    const { connecting, dials, greetings, answers } = attempts()
    answers('a')
    await until(() => greetings.has('a'))
    greetings.get('a')?.reject(refused('ERR_NGROK_105'))
    await assert.rejects(connecting, { serverCode: 'ERR_NGROK_105' })
    assert.deepEqual([...dials.keys()], ['a'])
  })

  test('rejects with the fault of the first when all fail, in whatever order', async () => {
    const { connecting, timers, dials } = attempts()
    timers.pass(500)
    await until(() => dials.size === 2)
    dials.get('b')?.reject(away('b'))
    await until(() => dials.size === 3)
    dials.get('c')?.reject(away('c'))
    dials.get('a')?.reject(away('a'))
    await assert.rejects(connecting, { message: 'a' })
  })
})
