import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type FailedAsk,
  type FaultKind,
  type FaultSpan,
  type Happened,
  judgeAsks,
  type OnlineSpan,
} from './nodes-verdict.ts'

const fault = (kind: FaultKind, node: string | undefined, from: number, until: number): FaultSpan => ({
  ...{ kind, node, from, struck: from + 10, until },
})
const online = (node: string, from = 0, to = Number.POSITIVE_INFINITY): OnlineSpan => ({
  ...{ address: 'pair', node, from, to },
})
const lost = (node: string, began: number, ended: number, parts: Partial<FailedAsk> = {}): FailedAsk => ({
  ...{ address: 'pair', form: 'pooled', node, began, ended, status: 503, text: 'nobody' },
  ...parts,
})
const verdict = (ask: FailedAsk, faults: readonly FaultSpan[], agents: Happened['agents']) => {
  const { strange, pooled, others, excused } = judgeAsks([ask], { faults, agents })
  return { faults: strange.length + pooled.length + others.length, why: Object.keys(excused)[0] }
}
const isFault = { faults: 1, why: undefined }

describe('a pooled address', () => {
  const both = [[online('node-1')], [online('node-2')]]
  const killed = fault('kill', 'node-1', 100_000, 110_000)

  test('may lose visits at the node that died, and visits on their way through it', () => {
    assert.equal(verdict(lost('node-1', 104_000, 104_010), [killed], both).why, 'its node was killed or frozen')
    assert.match(verdict(lost('node-2', 99_990, 100_020), [killed], both).why ?? '', /^it was in flight/)
  })

  test('must not lose later visits at other nodes while an agent is live', () => {
    assert.deepEqual(verdict(lost('node-2', 100_020, 100_030), [killed], both), isFault)
    assert.deepEqual(verdict(lost('node-3', 100_020, 100_030), [killed], both), isFault)
    assert.deepEqual(verdict(lost('node-2', 50_000, 50_010), [], both), isFault)
  })

  test('may lose visits while the whole machine stands still', () => {
    const judged = (from: number, to: number) =>
      judgeAsks([lost('node-2', 50_000, 53_000)], { faults: [], agents: both, slow: [{ from, to }] }).pooled.length
    assert.deepEqual(
      [judged(51_000, 52_000), judged(47_000, 48_100), judged(47_000, 47_900), judged(53_100, 54_000)],
      [0, 0, 1, 1],
    )
  })

  test('may lose a visit when no agent was online throughout', () => {
    const ended = [[online('node-1')], [online('node-2', 0, 100_015)]]
    assert.match(verdict(lost('node-3', 100_020, 100_030), [killed], ended).why ?? '', /^no agent was live/)
    const leaves = [[online('node-1')], [{ ...online('node-2', 0, 50_005), isLeft: true }]]
    assert.equal(verdict(lost('node-3', 50_000, 50_010), [], leaves).why, 'an agent left meanwhile')
    // An agent whose connection ends for no reason is not an excuse.
    const drops = [[online('node-1')], [online('node-2', 0, 50_005)]]
    assert.deepEqual(verdict(lost('node-3', 50_000, 50_010), [], drops), isFault)
    const fresh = [[online('node-1')], [online('node-2', 99_000)]]
    assert.match(verdict(lost('node-3', 100_020, 100_030), [killed], fresh).why ?? '', /^no agent was live/)
  })

  test('is served by an agent that moves', () => {
    const moves = [[online('node-1', 0, 50_000), online('node-2', 50_000)]]
    const stopped = fault('stop', 'node-1', 49_000, 60_000)
    assert.deepEqual(verdict(lost('node-3', 49_995, 50_005), [stopped], moves), isFault)
    const returns = [[online('node-1', 0, 50_000), online('node-2', 50_300)]]
    assert.match(verdict(lost('node-3', 50_100, 50_200), [stopped], returns).why ?? '', /^no agent was live/)
  })

  test('cannot be reached while its agent is cut off, except at the node of the agent', () => {
    const alone = [[online('node-1')]]
    const cut = fault('cut', 'node-1', 100_000, 104_000)
    assert.match(verdict(lost('node-2', 101_000, 101_010), [cut], alone).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-1', 101_000, 101_010), [cut], alone), isFault)
    assert.deepEqual(verdict(lost('node-2', 109_100, 109_110), [cut], alone), isFault)
  })

  test('outlives a database that is down for less than a lease', () => {
    const alone = [[online('node-1')]]
    const brief = fault('database cut', 'node-1', 100_000, 105_000)
    assert.deepEqual(verdict(lost('node-2', 104_000, 104_010), [brief], alone), isFault)
    const long = fault('database cut', 'node-1', 100_000, 115_000)
    assert.deepEqual(verdict(lost('node-2', 104_000, 104_010), [long], alone), isFault)
    assert.match(verdict(lost('node-2', 109_000, 109_010), [long], alone).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-1', 109_000, 109_010), [long], alone), isFault)
  })

  test('is unknown when its agent came while the database was down', () => {
    const came = [[online('node-1', 101_000)]]
    const away = fault('database restarted', undefined, 100_000, 104_000)
    assert.match(verdict(lost('node-2', 106_100, 106_110), [away], came).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-1', 106_100, 106_110), [away], came), isFault)
    assert.deepEqual(verdict(lost('node-2', 109_100, 109_110), [away], came), isFault)
  })
})

describe('any other address', () => {
  const agents = [[online('node-1')]]
  const alone = { form: 'alone' } as const

  test('is served too while its agent is live and in reach', () => {
    const stopped = fault('stop', 'node-2', 100_000, 110_000)
    assert.deepEqual(verdict(lost('node-3', 104_900, 104_910, alone), [stopped], agents), isFault)
    const frozen = fault('freeze', 'node-1', 100_000, 104_000)
    assert.match(verdict(lost('node-3', 103_000, 106_000, alone), [frozen], agents).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-3', 104_100, 104_110, alone), [frozen], agents), isFault)
  })

  test('is unknown at a node that was frozen when its agent came', () => {
    const frozen = fault('freeze', 'node-2', 100_000, 110_000)
    const came = [[online('node-1', 103_000)]]
    assert.match(verdict(lost('node-2', 110_200, 110_210, alone), [frozen], came).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-3', 110_200, 110_210, alone), [frozen], came), isFault)
    assert.deepEqual(verdict(lost('node-2', 115_100, 115_110, alone), [frozen], came), isFault)
  })

  test('is unknown at a node that was frozen when it was announced again after a lost lease', () => {
    const lostLease = fault('freeze', 'node-1', 87_000, 100_000)
    const frozen = fault('freeze', 'node-2', 100_300, 113_000)
    const both = [lostLease, frozen]
    assert.match(verdict(lost('node-2', 113_500, 113_510, alone), both, agents).why ?? '', /^no agent was live/)
    assert.deepEqual(verdict(lost('node-2', 113_500, 113_510, alone), [frozen], agents), isFault)
    assert.deepEqual(verdict(lost('node-3', 113_500, 113_510, alone), both, agents), isFault)
  })

  test('must never be answered by another service, whatever happens', () => {
    const killed = fault('kill', 'node-1', 100_000, 110_000)
    const strange = lost('node-1', 100_000, 100_010, { ...alone, status: 200, text: 'red by agent 7' })
    assert.deepEqual(verdict(strange, [killed], agents), isFault)
    assert.equal(judgeAsks([strange], { faults: [killed], agents }).strange.length, 1)
  })
})
