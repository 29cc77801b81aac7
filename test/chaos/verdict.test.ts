import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judgeKills, type Kill } from './kill-verdict.ts'
import { judge, type Round } from './verdict.ts'
import type { FailedVisit, VisitorsReport } from './visitors.ts'

const none = { done: 0, failed: 0, repeated: 0, p50: 0, p99: 0, max: 0 }
const report = (parts: Partial<VisitorsReport>): VisitorsReport => ({
  ...{ kinds: {}, all: none, failed: [], closed: [], acknowledged: [] },
  ...parts,
})
const failed = (kind: string, began: number, ended: number, parts: Partial<FailedVisit> = {}): FailedVisit => ({
  ...{ kind, began, ended, why: 'cut with an echo on its way: closed', ports: [4000] },
  ...parts,
})

describe('an upgrade', () => {
  const drainMs = 4000
  const rounds: Round[] = [
    { number: 1, breakage: undefined, began: 10_000, done: 12_000, ended: 16_500 },
    { number: 2, breakage: 'faulty settings', began: 30_000, done: 30_500, ended: undefined },
  ]
  const verdict = (parts: Partial<VisitorsReport>) => judge(report(parts), rounds, drainMs)

  test('may end long connections after the drain time, and not before', () => {
    const { cutAfterDrain, closedAfterDrain, faults } = verdict({
      failed: [failed('TCP edge kept', 15_990, 16_010), failed('agent WebSocket', 13_000, 13_010)],
      closed: [
        { kind: 'edge WebSocket', at: 16_020, port: 1 },
        { kind: 'edge WebSocket', at: 34_600, port: 1 },
      ],
    })
    assert.deepEqual({ cutAfterDrain, closedAfterDrain }, { cutAfterDrain: 1, closedAfterDrain: 1 })
    assert.equal(faults.length, 2)
    assert.match(faults[0] ?? '', /^agent WebSocket: .*from \+3000 ms \(round 1, done \+2000, ended \+6500\)/)
    assert.match(faults[1] ?? '', /closed before the drain time was over; \+4600 ms \(round 2, faulty settings\)/)
  })

  test('must never make requests and new connections fail', () => {
    const kinds = ['edge HTTP/1.1 kept', 'agent TCP new', 'API writes']
    const { faults } = verdict({ failed: kinds.map((kind) => failed(kind, 16_000, 16_010)) })
    assert.equal(faults.length, kinds.length)
  })

  test('may fail requests through the official agent while it reconnects', () => {
    const { official, faults } = verdict({
      failed: [failed('official agent', 16_000, 17_000), failed('official agent', 1000, 2000)],
    })
    assert.equal(official, 1)
    assert.deepEqual(faults.length, 1)
  })
})

describe('a kill', () => {
  const killed: Kill = {
    ...{ round: 1, what: 'worker', at: 10_000, ports: new Set([4000]) },
    ...{ hadAgents: { own: true, official: false }, backMs: { own: 300, official: 10 }, isDouble: false },
  }
  const faultsOf = (visit: FailedVisit, kill: Partial<Kill> = {}) =>
    judgeKills(report({ failed: [visit] }), [{ ...killed, ...kill }]).faults

  test('excuses failures of connections in the process', () => {
    assert.deepEqual(faultsOf(failed('edge HTTP/1.1 kept', 9990, 10_010)), [])
    assert.deepEqual(faultsOf(failed('edge HTTP/1.1 kept', 9990, 10_010, { ports: [4001] })).length, 1)
    assert.deepEqual(faultsOf(failed('edge HTTP/1.1 kept', 9000, 9010)).length, 1)
    assert.deepEqual(faultsOf(failed('edge HTTP/1.1 new', 19_000, 19_010)).length, 1)
  })

  test('excuses visits that were on their way to an agent in the process, but no later ones', () => {
    const elsewhere = { ports: [4001] }
    assert.deepEqual(faultsOf(failed('agent HTTP/2 kept', 9990, 10_010, elsewhere)), [])
    assert.equal(faultsOf(failed('agent HTTP/2 kept', 10_001, 10_010, elsewhere)).length, 1)
    const hadNone = { hadAgents: { own: false, official: false } }
    assert.equal(faultsOf(failed('agent HTTP/2 kept', 9990, 10_010, elsewhere), hadNone).length, 1)
  })

  test('of the control process, which agents need to come back, excuses a delay', () => {
    const late = failed('agent HTTP/2 kept', 11_500, 14_510, { ports: [4001] })
    assert.equal(faultsOf(late).length, 1)
    assert.deepEqual(faultsOf(late, { isDouble: true, backMs: { own: 4000, official: 4000 } }), [])
  })

  test('must not keep agents away for long', () => {
    const { faults, backMs } = judgeKills(report({}), [killed, { ...killed, backMs: { own: 2100, official: 2200 } }])
    assert.equal(faults.length, 2)
    assert.deepEqual(backMs, { own: 2100, official: 2200 })
  })
})
