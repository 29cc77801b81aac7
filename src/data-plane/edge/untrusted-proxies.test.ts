import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { UntrustedProxies } from './untrusted-proxies.ts'

function watch(t: TestContext) {
  const lines: string[] = []
  const log = createLog({ format: 'json', destination: { write: (line) => lines.push(line) } })
  const counted = { total: 0 }
  const proxies = new UntrustedProxies({ log, total: () => counted.total })
  t.after(() => proxies.close())
  return {
    proxies,
    named: () => lines.map((line) => JSON.parse(line).address),
    /** Requests of an address with such headers, each of which ends, and of others without them. */
    ask: (address: string, requests: number, others = 0) => {
      for (let i = 0; i < requests; i++) {
        proxies.saw(address)
        counted.total += 1 + others
      }
    },
  }
}

test('an address that most requests come from is named once, and counted', (t) => {
  const { proxies, named, ask } = watch(t)
  ask('10.0.0.5', 99)
  assert.deepEqual([proxies.found, named()], [[], []])
  ask('10.0.0.5', 301)
  assert.deepEqual(proxies.found, [{ address: '10.0.0.5', requests: 400 }])
  assert.deepEqual(named(), ['10.0.0.5'])
})

test('a client that sends such headers among many others is not a proxy', (t) => {
  const { proxies, named, ask } = watch(t)
  ask('203.0.113.9', 1000, 2)
  assert.deepEqual([proxies.found, named()], [[], []])
})

test('one that was named is no proxy once others have most requests', (t) => {
  const { proxies, ask } = watch(t)
  ask('10.0.0.5', 100)
  assert.equal(proxies.found.length, 1)
  ask('10.0.0.5', 100, 5)
  assert.deepEqual(proxies.found, [])
})

test('thousands of addresses do not push out the one with most requests, nor fill the log', (t) => {
  const { proxies, named, ask } = watch(t)
  ask('10.0.0.5', 200)
  for (let i = 0; i < 10_000; i++) ask(`2001:db8::${i.toString(16)}`, 1)
  ask('10.0.0.5', 10_000)
  assert.deepEqual(proxies.found, [{ address: '10.0.0.5', requests: 10_200 }])
  ask('10.0.0.6', 20_000)
  assert.deepEqual(named(), ['10.0.0.5'], 'one line a minute')
})
