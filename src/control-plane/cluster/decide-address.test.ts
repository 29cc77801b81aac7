import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Applicant, decideReservation, type JudgedAddress, type JudgedHolder } from './decide-address.ts'

const holder = (n: number, nodeId: string, isAlive = true): JudgedHolder => ({
  ...{ tunnelId: `tn_${n}`, sessionId: `ts_${n}`, nodeId, isAlive },
})
const reservation = (n: number, terms: Partial<Applicant> = {}): Applicant => ({
  ...{ tunnelId: `tn_${n}`, sessionId: `ts_${n}`, nodeId: 'nd_here', version: 'p.q.r', ...terms },
})
const inPool = (n: number, terms: Partial<Applicant> = {}): Applicant =>
  reservation(n, { pool: { ownerId: 'usr_1' }, ...terms })
const alone = (...holders: JudgedHolder[]): JudgedAddress<JudgedHolder> => ({
  ...{ isPooled: false, ownerId: '', digest: '', holders },
})
const pool = (...holders: JudgedHolder[]): JudgedAddress<JudgedHolder> => ({
  ...{ isPooled: true, ownerId: 'usr_1', digest: 'p.q.r', holders },
})
/** The tunnels that lose the place, or why it was not granted. */
const outcome = (wanted: Applicant, place: JudgedAddress<JudgedHolder>): readonly string[] | string => {
  const decision = decideReservation(wanted, place)
  return decision.isGranted ? decision.replaced.map(({ tunnelId }) => tunnelId) : decision.difference
}

describe('a place', () => {
  const cases: readonly [name: string, Applicant, JudgedAddress<JudgedHolder>, string | readonly string[]][] = [
    ['that is free', reservation(1), alone(), []],
    ['of a stranger', reservation(1), alone(holder(2, 'nd_b')), 'asks alone'],
    ['of a stranger whose node is lost', reservation(1), alone(holder(2, 'nd_b', false)), ['tn_2']],
    ['of the same tunnel at another node', reservation(1), alone(holder(1, 'nd_b')), ['tn_1']],
    ['that this node has', reservation(1), alone(holder(2, 'nd_here')), ['tn_2']],
    ['of a pool, for one alone', reservation(1), pool(holder(2, 'nd_b')), 'asks alone'],
    ['of one alone, for a pool', inPool(1), alone(holder(2, 'nd_b')), 'is alone'],
    ['of a pool that is like it', inPool(1), pool(holder(2, 'nd_b'), holder(3, 'nd_here')), ['tn_3']],
    [
      'of a pool with a part of its own at another node',
      inPool(1),
      pool(holder(1, 'nd_b'), holder(2, 'nd_b')),
      ['tn_1'],
    ],
    ['of a pool that was lost', inPool(1, { version: 'x.y.z' }), pool(holder(2, 'nd_b', false)), ['tn_2']],
    ['of a pool of another owner', inPool(1, { pool: { ownerId: 'usr_2' } }), pool(holder(2, 'nd_b')), 'owner'],
    ['of a pool with another protocol', inPool(1, { version: 'x.y.z' }), pool(holder(2, 'nd_b')), 'protocol'],
    ['of a pool with another policy', inPool(1, { version: 'p.y.z' }), pool(holder(2, 'nd_b')), 'policy'],
    ['of a pool with other guards', inPool(1, { version: 'p.q.z' }), pool(holder(2, 'nd_b')), 'guards'],
  ]
  for (const [name, wanted, place, expected] of cases) {
    test(name, () => assert.deepEqual(outcome(wanted, place), expected))
  }
})
