import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DialFault, type GroupMember, type TunnelGroup } from '../../model/dial.ts'
import type { BackendPlan } from '../../model/edge-config.ts'
import { createBackend, type Reach } from './backend.ts'
import type { Backend, Target } from './dial.ts'

type Labels = Readonly<Record<string, string>>

/** Groups by the value of their label `app`; the members can be changed while a backend holds the group. */
function reachOf(groups: Record<string, readonly string[]>, random: () => number = () => 0) {
  const members = (app: string): GroupMember[] =>
    (groups[app] ?? []).map((tunnelId) => ({ tunnelId, httpVersion: 1 }) as const)
  const followed = new Map<string, { members: readonly GroupMember[]; released: number }>()
  const reach: Reach = {
    dial: async () => new DialFault('offline', 'nobody'),
    followGroup: ({ app = '' }: Labels): TunnelGroup => {
      const group = { members: members(app), released: 0, release: () => void group.released++ }
      followed.set(app, group)
      return group
    },
    random,
  }
  return { reach, followed }
}

function names(targets: Iterable<Target>): string[] {
  return [...targets].map((target) => (target.kind === 'dial' ? target.key : `fixed ${target.status}`))
}

function first(backend: Backend): string | undefined {
  for (const target of backend.targets()) return names([target])[0]
  return undefined
}

const groupOf = (app: string): BackendPlan => ({ kind: 'tunnel_group', id: `bkdtg_${app}`, labels: { app } })
const page: BackendPlan = { kind: 'http_response', id: 'bkdhr_1', status: 503, headers: {}, body: 'later' }

describe('a tunnel group', () => {
  test('takes its tunnels strictly in turn, and offers each once', () => {
    const backend = createBackend(groupOf('a'), reachOf({ a: ['x', 'y', 'z'] }).reach)
    assert.deepEqual(
      [1, 2, 3, 4].map(() => names(backend.targets())),
      [
        ['x', 'y', 'z'],
        ['y', 'z', 'x'],
        ['z', 'x', 'y'],
        ['x', 'y', 'z'],
      ],
    )
  })

  test('without tunnels is offline and offers nothing', () => {
    const backend = createBackend(groupOf('a'), reachOf({}).reach)
    assert.equal(backend.isOnline, false)
    assert.deepEqual(names(backend.targets()), [])
  })

  test('gives the same target for the same tunnel, so that connections to it can be kept', () => {
    const backend = createBackend(groupOf('a'), reachOf({ a: ['x'] }).reach)
    assert.equal([...backend.targets()][0], [...backend.targets()][0])
  })

  test('gives it still after others came and went', () => {
    const { reach, followed } = reachOf({ a: ['x', 'y'] })
    const backend = createBackend(groupOf('a'), reach)
    const group = followed.get('a')
    assert.ok(group)
    const [, y] = backend.targets()
    group.members = [...group.members.slice(1), { tunnelId: 'z', httpVersion: 2 }]
    const targets = [...backend.targets()]
    assert.deepEqual(names(targets), ['z', 'y'])
    assert.equal(targets[1], y)
  })

  test('offers the tunnels that it had when it was asked', () => {
    const { reach, followed } = reachOf({ a: ['x', 'y'] })
    const backend = createBackend(groupOf('a'), reach)
    const group = followed.get('a')
    assert.ok(group)
    const before = backend.targets()
    const [, y] = group.members
    assert.ok(y)
    group.members = [y]
    const after = backend.targets()
    assert.deepEqual([names(before), names(after)], [['x', 'y'], ['y']])
    group.members = []
    assert.deepEqual([backend.isOnline, names(backend.targets())], [false, []])
  })

  test('then offers, once, those that came since', () => {
    const { reach, followed } = reachOf({ a: ['x', 'y'] })
    const backend = createBackend(groupOf('a'), reach)
    const group = followed.get('a')
    assert.ok(group)
    const offered = backend.targets()[Symbol.iterator]()
    const next = () => names([offered.next().value ?? []].flat())
    assert.deepEqual([next(), next()], [['x'], ['y']])
    const [x] = group.members
    assert.ok(x)
    // One stays, one is listed anew because it has moved, and one is new.
    group.members = [x, { tunnelId: 'y', httpVersion: 1 }, { tunnelId: 'z', httpVersion: 1 }]
    assert.deepEqual([next(), next()], [['y'], ['z']])
    group.members = [{ tunnelId: 'x', httpVersion: 1 }]
    assert.deepEqual(next(), [])
  })

  test('takes one turn per call, however many of its tunnels the caller examines', () => {
    const backend = createBackend(groupOf('a'), reachOf({ a: ['x', 'y', 'z'] }).reach)
    const asked = [backend.targets(), backend.targets()]
    assert.deepEqual([first(backend), first(backend), first(backend)], ['z', 'x', 'y'])
    assert.deepEqual(asked.map(names), [
      ['x', 'y', 'z'],
      ['y', 'z', 'x'],
    ])
    // Each once, even for a caller that keeps asking.
    assert.deepEqual(asked.map(names), [[], []])
  })

  test('is released once with its backend, however deeply nested', () => {
    const { reach, followed } = reachOf({ a: ['x'] })
    const plan: BackendPlan = {
      kind: 'failover',
      id: 'bkdfo_1',
      children: [{ kind: 'weighted', id: 'bkdwd_1', children: [{ weight: 1, plan: groupOf('a') }] }],
    }
    createBackend(plan, reach).release()
    assert.equal(followed.get('a')?.released, 1)
  })
})

describe('a pool', () => {
  const pool: BackendPlan = { ...groupOf('a'), pool: { proxyHeader: 2 } } as BackendPlan
  const starts = (backend: Backend, times: number) => Array.from({ length: times }, () => first(backend))
  const withRemote = (plan: BackendPlan) => {
    const { reach, followed } = reachOf({ a: ['x'] })
    const backend = createBackend(plan, reach)
    const group = followed.get('a')
    assert.ok(group)
    group.members = [
      ...group.members,
      ...['y', 'z'].map((id) => ({ tunnelId: id, httpVersion: 1, isRemote: true }) as const),
    ]
    return backend
  }

  test('takes all in turn when all are at this node, with their PROXY header', () => {
    const backend = createBackend(pool, reachOf({ a: ['x', 'y'] }).reach)
    assert.deepEqual(starts(backend, 4), ['x', 'y', 'x', 'y'])
    for (const target of backend.targets()) assert.equal(target.kind === 'dial' && target.proxyHeader, 2)
  })

  test('gives members at this node two turns for each turn of one at another, and offers each once', () => {
    const backend = withRemote(pool)
    assert.deepEqual(starts(backend, 8), ['x', 'y', 'z', 'x', 'x', 'y', 'z', 'x'])
    assert.deepEqual(names(backend.targets()), ['x', 'y', 'z'])
  })

  test('a tunnel group has no preference', () => {
    assert.deepEqual(starts(withRemote(groupOf('a')), 6), ['x', 'y', 'z', 'x', 'y', 'z'])
  })
})

describe('failover', () => {
  const plan: BackendPlan = { kind: 'failover', id: 'bkdfo_1', children: [groupOf('a'), page] }

  test('goes on to the next when the first is offline', () => {
    assert.equal(first(createBackend(plan, reachOf({}).reach)), 'fixed 503')
  })

  test('tries all tunnels of the first before the next', () => {
    assert.deepEqual(names(createBackend(plan, reachOf({ a: ['x', 'y'] }).reach).targets()), ['x', 'y', 'fixed 503'])
  })
})

describe('weights', () => {
  const plan = (weights: Record<string, number>): BackendPlan => ({
    kind: 'weighted',
    id: 'bkdwd_1',
    children: Object.entries(weights).map(([app, weight]) => ({ weight, plan: groupOf(app) })),
  })
  const online = { a: ['a'], b: ['b'] }

  test('a weight of 0 is never drawn', () => {
    for (const random of [0, 0.5, 0.999]) {
      assert.equal(first(createBackend(plan({ a: 0, b: 1 }), reachOf(online, () => random).reach)), 'b')
    }
  })

  test('with all weights 0 there is no target', () => {
    const backend = createBackend(plan({ a: 0, b: 0 }), reachOf(online).reach)
    assert.equal(backend.isOnline, false)
    assert.equal(first(backend), undefined)
  })

  test('shares are in proportion', () => {
    let at = 0
    const { reach } = reachOf(online, () => (at++ % 100) / 100)
    const backend = createBackend(plan({ a: 3, b: 1 }), reach)
    const drawn = Array.from({ length: 100 }, () => first(backend))
    assert.equal(drawn.filter((each) => each === 'a').length, 75)
  })

  test('an offline child has no share', () => {
    const backend = createBackend(plan({ a: 1000, b: 1 }), reachOf({ b: ['b'] }).reach)
    assert.equal(first(backend), 'b')
  })
})

test('a fixed response has a default type unless its headers have one', () => {
  const { reach } = reachOf({})
  const typed: BackendPlan = { ...page, headers: { 'Content-Type': 'text/html' } }
  const headers = (plan: BackendPlan): unknown =>
    [...createBackend(plan, reach).targets()].map((target) => (target.kind === 'fixed' ? target.headers : []))
  assert.deepEqual(headers(page), [[['content-type', 'text/plain; charset=utf-8']]])
  assert.deepEqual(headers(typed), [[['Content-Type', 'text/html']]])
  assert.deepEqual(headers({ ...page, body: '' }), [[]])
})

describe('a static backend', () => {
  test('that is moved is another target, since connections to the former one may be kept', () => {
    const { reach } = reachOf({})
    const at = { kind: 'static', id: 'bkdsc_1', host: 'a.test', port: 80, tls: false } as const
    const keys = [at, { ...at, host: 'b.test' }, { ...at, port: 81 }, { ...at, tls: true }, at].map((plan) =>
      first(createBackend(plan, reach)),
    )
    assert.equal(new Set(keys).size, 4)
    assert.equal(keys[0], keys[4])
  })
})
