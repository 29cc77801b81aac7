import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { testPlan } from '../testing/test-agent.ts'
import { AgentTunnel } from '../tunnel.ts'
import { ConnectionWatch } from './connection-watch.ts'
import { Inspector } from './inspector.ts'

test('exchanges beyond the allowance are counted, and not kept', (t) => {
  t.after(() => mock.timers.reset())
  mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  const pass = (ms: number): void => {
    now += ms
    mock.timers.tick(ms)
  }
  const inspector = new Inspector({ now: () => now, clock: () => now })
  const tunnel = new AgentTunnel(testPlan())
  const watch = new ConnectionWatch(inspector.watch(tunnel, { address: '192.0.2.1:1', proto: 'https' }))
  const ask = (path: string): void => {
    watch.fromVisitor(Buffer.from(`GET ${path} HTTP/1.1\r\n\r\n`))
    watch.fromService(Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'))
  }
  for (let i = 0; i < 1000; i++) ask(`/${i}`)
  assert.deepEqual([inspector.exchanges.latest().length, inspector.leftOut], [400, 600])
  const { requests } = inspector.meterOf(tunnel)
  assert.deepEqual([requests.figures.count, requests.figures.gauge], [1000, 0])
  pass(1000)
  for (let i = 0; i < 300; i++) ask(`/later/${i}`)
  assert.equal(inspector.exchanges.latest()[0]?.target, '/later/199')
  assert.deepEqual([inspector.leftOut, requests.figures.count], [700, 1300])
  // Of a steady stream, a hundred in a row every half second.
  pass(250)
  ask('/soon')
  pass(250)
  for (let i = 0; i < 200; i++) ask(`/last/${i}`)
  assert.equal(inspector.exchanges.latest()[0]?.target, '/last/99')
  assert.equal(inspector.exchanges.latest()[100]?.target, '/later/199')
  assert.deepEqual([inspector.leftOut, requests.figures.count], [801, 1501])
})
