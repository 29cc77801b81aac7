import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Applicant, decideReservation, type JudgedAddress, type JudgedHolder } from './decide-address.ts'

type State = 'alive' | 'lost' | 'gone'

const holder = (n: number, nodeId: string, state: State = 'alive'): JudgedHolder => ({
  ...{ tunnelId: `tn_${n}`, sessionId: `ts_${n}`, nodeId, isAlive: state === 'alive', isLost: state === 'lost' },
})
const reservation = (n: number, terms: Partial<Applicant> = {}): Applicant => ({
  ...{ tunnelId: `tn_${n}`, sessionId: `ts_${n}`, nodeId: 'nd_here', version: 'p.q.r', ownerId: 'usr_2', ...terms },
})
const inPool = (n: number, terms: Partial<Applicant> = {}): Applicant =>
  reservation(n, { pool: { ownerId: 'usr_1' }, ...terms })
const ofOwner = (n: number): Applicant => reservation(n, { ownerId: 'usr_1' })
const alone = (...holders: JudgedHolder[]): JudgedAddress<JudgedHolder> => ({
  ...{ isPooled: false, ownerId: 'usr_1', digest: '', holders },
})
const pool = (...holders: JudgedHolder[]): JudgedAddress<JudgedHolder> => ({
  ...{ isPooled: true, ownerId: 'usr_1', digest: 'p.q.r', holders },
})
/** As a version before this one stored it. */
const unowned = (...holders: JudgedHolder[]): JudgedAddress<JudgedHolder> => ({ ...alone(...holders), ownerId: '' })
/** The tunnels that lose the place; or why it was not granted, and the tunnels whose nodes are asked before it is. */
const outcome = (wanted: Applicant, place: JudgedAddress<JudgedHolder>): readonly string[] | string => {
  const decision = decideReservation(wanted, place)
  if (decision.isGranted) return decision.replaced.map(({ tunnelId }) => tunnelId)
  return [decision.difference, ...decision.lost.map(({ tunnelId }) => `ask for ${tunnelId}`)].join(', ')
}

describe('a place', () => {
  const cases: readonly [name: string, Applicant, JudgedAddress<JudgedHolder>, string | readonly string[]][] = [
    ['that is free', reservation(1), alone(), []],
    ['of a stranger', reservation(1), alone(holder(2, 'nd_b')), 'asks alone'],
    ['of a stranger whose node is gone', reservation(1), alone(holder(2, 'nd_b', 'gone')), ['tn_2']],
    ['of a stranger whose node is lost', reservation(1), alone(holder(2, 'nd_b', 'lost')), 'asks alone, ask for tn_2'],
    ['of the same owner at a living node', ofOwner(1), alone(holder(2, 'nd_b')), 'asks alone'],
    ['of the same owner at a lost node', ofOwner(1), alone(holder(2, 'nd_b', 'lost')), ['tn_2']],
    ['of nobody known at a lost node', ofOwner(1), unowned(holder(2, 'nd_b', 'lost')), 'asks alone, ask for tn_2'],
    ['of the same tunnel at a lost node', reservation(1), alone(holder(1, 'nd_b', 'lost')), ['tn_1']],
    [
      'of the same session at a lost node',
      reservation(3, { sessionId: 'ts_1' }),
      alone(holder(1, 'nd_b', 'lost')),
      ['tn_1'],
    ],
    [
      'of strangers at a living and a lost node',
      inPool(1, { version: 'x.y.z' }),
      pool(holder(2, 'nd_b'), holder(3, 'nd_c', 'lost')),
      'protocol',
    ],
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
    ['of a pool that is gone', inPool(1, { version: 'x.y.z' }), pool(holder(2, 'nd_b', 'gone')), ['tn_2']],
    ['of a lost pool that is like it', inPool(1), pool(holder(2, 'nd_b', 'lost'), holder(3, 'nd_c', 'gone')), ['tn_3']],
    [
      'of a lost pool, otherwise',
      inPool(1, { version: 'x.y.z', ownerId: 'usr_1' }),
      pool(holder(2, 'nd_b', 'lost')),
      ['tn_2'],
    ],
    [
      'of a lost pool of another owner',
      inPool(1, { pool: { ownerId: 'usr_2' } }),
      pool(holder(2, 'nd_b', 'lost')),
      'owner, ask for tn_2',
    ],
    ['of a pool of another owner', inPool(1, { pool: { ownerId: 'usr_2' } }), pool(holder(2, 'nd_b')), 'owner'],
    ['of a pool with another protocol', inPool(1, { version: 'x.y.z' }), pool(holder(2, 'nd_b')), 'protocol'],
    ['of a pool with another policy', inPool(1, { version: 'p.y.z' }), pool(holder(2, 'nd_b')), 'policy'],
    ['of a pool with other guards', inPool(1, { version: 'p.q.z' }), pool(holder(2, 'nd_b')), 'guards'],
  ]
  for (const [name, wanted, place, expected] of cases) {
    test(name, () => assert.deepEqual(outcome(wanted, place), expected))
  }
})
