import assert from 'node:assert/strict'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { WorkerTunnel } from '../../link/planes/plane-calls.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { LabelGroups, type LabelledTunnel } from '../../model/label-groups.ts'
import { WorkerTunnels } from './worker-tunnels.ts'

/** Longer than a dial waits for a tunnel, in milliseconds. */
const LONG_MS = 10_000

const visit = { ip: '192.0.2.1', port: 4000, proto: 'https', edge: 'none', passthroughTls: false } as const
const request = (tunnelId: string): DialRequest => ({ tunnelId, ...visit })

const configOf = (id: string): EdgeConfig => ({
  id: `ep_${id}`,
  kind: 'https',
  names: [`${id}.example.com`],
  ports: [],
  modules: {},
  routes: [],
})
const placed = (id: string, planeId: string): WorkerTunnel => ({
  tunnelId: id,
  sessionId: `ts_${id}`,
  planeId,
  httpVersion: 1,
  config: configOf(id),
})
const labelled = (id: string, planeId: string, labels = { app: 'web' }): WorkerTunnel => ({
  tunnelId: id,
  sessionId: `ts_${id}`,
  planeId,
  httpVersion: 1,
  labels,
})

/** A plane with what it serves, and a relay whose answers the test sets. */
class Plane {
  readonly served = new Set<string>()
  readonly here = new Map<string, LabelledTunnel>()
  readonly groups = new LabelGroups<LabelledTunnel>()
  readonly dialled: string[] = []
  readonly moved: string[] = []
  isLeaving = false
  /** The outcomes of dials over a leg, by session. */
  readonly legs = new Map<string, ByteStream | DialFault>()
  /** What is really online, by plane. */
  readonly online = new Map<string, string>()
  relay = async (planeId: string, { tunnelId }: DialRequest): Promise<ByteStream | DialFault> => {
    this.dialled.push(`${tunnelId}@${planeId}`)
    if (this.online.get(tunnelId) !== planeId) return new DialFault('offline', 'not here')
    return stream
  }
  readonly others = new WorkerTunnels({
    edges: {
      compile: async () => ({ release() {} }),
      serve: async ({ id }) => void this.served.add(id),
      serveIdle: async ({ id }) => void this.served.add(id),
      letGo: (id) => void this.served.delete(id),
    },
    groups: this.groups,
    relay: (planeId, asked) => this.relay(planeId, asked),
    leg: (sessionId) => this.legs.get(sessionId),
    isHere: (id) => this.here.has(id),
    isLeaving: () => this.isLeaving,
    handOver: (id) => {
      const tunnel = this.here.get(id)
      this.here.delete(id)
      if (tunnel?.labels) this.groups.delete(tunnel)
    },
    moved: (id) => void this.moved.push(id),
  })

  added(...added: WorkerTunnel[]): Promise<void> {
    return this.others.change({ isAll: false, added, removed: [], lost: [] })
  }

  removed(...removed: string[]): void {
    void this.others.change({ isAll: false, added: [], removed, lost: [] })
  }

  lost(...lost: string[]): void {
    void this.others.change({ isAll: false, added: [], removed: [], lost })
  }

  all(...added: WorkerTunnel[]): Promise<void> {
    return this.others.change({ isAll: true, added, removed: [], lost: [] })
  }

  /** A tunnel comes online here, as the registry does it: listed first, then told. */
  start({ tunnelId: id, labels, config }: WorkerTunnel): void {
    const tunnel = { id, httpVersion: 1 as const, labels }
    this.here.set(id, tunnel)
    if (labels) this.groups.add(tunnel)
    if (config) this.served.add(config.id)
    this.others.cameHere(id)
  }

  end(id: string): void {
    const tunnel = this.here.get(id)
    this.here.delete(id)
    if (tunnel?.labels) this.groups.delete(tunnel)
    this.served.delete(`ep_${id}`)
  }
}

test('a place is served by its tunnel, or by another tunnel of its session', async () => {
  const plane = new Plane()
  await plane.added(placed('tn_1', 'w2'), labelled('tn_2', 'w2'))
  const serves = (place: string, tunnelId: string, sessionId: string) =>
    plane.others.serves({ place: `secure:${place}.example.com`, tunnelId, sessionId })
  assert.equal(serves('tn_1', 'tn_1', 'ts_1'), true)
  assert.equal(serves('tn_1', 'tn_9', 'ts_tn_1'), true)
  assert.equal(serves('tn_9', 'tn_9', 'ts_tn_1'), false)
  assert.equal(serves('tn_1', 'tn_9', 'ts_9'), false)
  assert.equal(serves('tn_2', 'tn_9', 'ts_tn_2'), false, 'it has labels only')
  plane.lost('tn_1')
  assert.equal(serves('tn_1', 'tn_1', 'ts_1'), true, 'its agent may come back')
})

const stream = { isStream: true } as unknown as ByteStream

/** A clock that the test moves. */
function clock(t: TestContext): (ms: number) => Promise<void> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  t.mock.method(performance, 'now', () => now)
  return async (ms) => {
    now += ms
    t.mock.timers.tick(ms)
    await settled()
  }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

const isOffline = (outcome: unknown): boolean => outcome instanceof DialFault && outcome.reason === 'offline'

describe('tunnels at other planes', () => {
  let plane: Plane
  beforeEach(() => {
    plane = new Plane()
  })

  test('are reached over a leg of their session, and by relay when there is none or it fails', async () => {
    const direct = { isDirect: true } as unknown as ByteStream
    for (const id of ['tn_1', 'tn_2']) plane.online.set(id, 'w2')
    await plane.added(placed('tn_1', 'w2'), labelled('tn_2', 'w2'))
    plane.legs.set('ts_tn_1', direct)
    assert.equal(await plane.others.dial(request('tn_1')), direct)
    assert.deepEqual(plane.dialled, [])
    assert.equal(await plane.others.dial(request('tn_2')), stream, 'another session')
    for (const reason of ['offline', 'busy'] as const) {
      plane.legs.set('ts_tn_1', new DialFault(reason, 'the leg is lost'))
      assert.equal(await plane.others.dial(request('tn_1')), stream, reason)
    }
    plane.legs.delete('ts_tn_1')
    assert.equal(await plane.others.dial(request('tn_1')), stream)
    assert.deepEqual(plane.dialled, ['tn_2@w2', 'tn_1@w2', 'tn_1@w2', 'tn_1@w2'])
    plane.legs.set('ts_tn_1', direct)
    plane.removed('tn_1')
    assert.ok(isOffline(await plane.others.dial(request('tn_1'))), 'a leg does not reopen a closed tunnel')
  })

  test('drop kept connections when a leg of their session comes or goes, and no others do', async () => {
    await plane.added(placed('tn_1', 'w2'), placed('tn_2', 'w2'), { ...placed('tn_3', 'w2'), sessionId: 'ts_tn_1' })
    plane.others.legChanged('ts_tn_1')
    plane.others.legChanged('ts_unheard')
    assert.deepEqual(plane.moved, ['tn_1', 'tn_3'])
    plane.moved.length = 0
    plane.removed('tn_3')
    plane.start(placed('tn_1', 'w1'))
    plane.moved.length = 0
    plane.others.legChanged('ts_tn_1')
    assert.deepEqual(plane.moved, [])
  })

  test('are served and reached where they are, until they are removed', async () => {
    plane.online.set('tn_1', 'w2')
    assert.ok(isOffline(await plane.others.dial(request('tn_1'))))
    await plane.added(placed('tn_1', 'w2'))
    assert.deepEqual([...plane.served], ['ep_tn_1'])
    assert.ok(plane.others.holderOf('tn_1'))
    assert.equal(await plane.others.dial(request('tn_1')), stream)
    plane.removed('tn_1', 'tn_unheard')
    assert.equal(plane.served.size, 0)
    assert.equal(plane.others.size, 0)
    assert.ok(isOffline(await plane.others.dial(request('tn_1'))))
    assert.deepEqual(plane.dialled, ['tn_1@w2'])
  })

  test('include those that leave this plane, whose address is still served', async () => {
    plane.start(placed('tn_1', 'w1'))
    plane.start(labelled('tn_2', 'w1'))
    await plane.added(placed('tn_1', 'w2'), labelled('tn_2', 'w2'))
    assert.deepEqual([plane.here.size, plane.others.size], [2, 0], 'old news')
    plane.isLeaving = true
    for (const id of ['tn_1', 'tn_2']) plane.online.set(id, 'w2')
    await plane.added(placed('tn_1', 'w2'), labelled('tn_2', 'w2'))
    assert.equal(plane.here.size, 0)
    assert.deepEqual([...plane.served], ['ep_tn_1'])
    assert.deepEqual(
      plane.groups.find({ app: 'web' }).map(({ id }) => id),
      ['tn_2'],
    )
    for (const id of ['tn_1', 'tn_2']) assert.equal(await plane.others.dial(request(id)), stream)
    assert.deepEqual(plane.moved, ['tn_1', 'tn_2'])
    plane.removed('tn_1')
    assert.equal(plane.served.size, 0)
  })

  test('report their moves, and keep no connections to a plane that drains', async () => {
    await plane.added(placed('tn_1', 'w2'), placed('tn_2', 'w3'))
    await plane.added(placed('tn_1', 'w2'))
    assert.deepEqual(plane.moved, [])
    await plane.added(placed('tn_1', 'w3'))
    assert.deepEqual(plane.moved.splice(0), ['tn_1'])
    const kept = () => ['tn_1', 'tn_9'].map((id) => plane.others.mayKeep(id))
    assert.deepEqual(kept(), [true, true])
    plane.others.drains('w3')
    assert.deepEqual(new Set(plane.moved.splice(0)), new Set(['tn_1', 'tn_2']))
    assert.deepEqual(kept(), [false, true])
    plane.start(placed('tn_1', 'w1'))
    assert.deepEqual(plane.moved, ['tn_1'])
    assert.deepEqual(kept(), [true, true])
    plane.others.isGone('w3')
    assert.ok(plane.others.mayKeep('tn_2'))
  })

  test('pass on any fault other than being offline', async () => {
    await plane.added(placed('tn_1', 'w2'))
    for (const reason of ['busy', 'timeout', 'refused'] as const) {
      const fault = new DialFault(reason, reason)
      plane.relay = async () => fault
      assert.equal(await plane.others.dial(request('tn_1')), fault)
    }
  })

  test('are waited for when their plane is lost, and reached where they come back', async (t) => {
    const pass = clock(t)
    await plane.added(placed('tn_1', 'w2'))
    plane.lost('tn_1', 'tn_unheard')
    assert.equal(plane.others.holderOf('tn_1'), undefined)
    assert.deepEqual([...plane.served], ['ep_tn_1'], 'visitors are let in, and wait')
    const visitors = Array.from({ length: 20 }, () => plane.others.dial(request('tn_1')))
    await pass(1000)
    plane.online.set('tn_1', 'w3')
    await plane.added(placed('tn_1', 'w3'))
    assert.deepEqual(new Set(await Promise.all(visitors)), new Set([stream]))
    await pass(LONG_MS)
    assert.ok(plane.others.holderOf('tn_1'), 'its expiry is cancelled')
  })

  test('are given up when they do not come back', async (t) => {
    const pass = clock(t)
    await plane.added(placed('tn_1', 'w2'))
    plane.lost('tn_1')
    plane.lost('tn_1')
    const visitors = [plane.others.dial(request('tn_1')), plane.others.dial(request('tn_1'))]
    await pass(2000)
    visitors.push(plane.others.dial(request('tn_1')))
    await pass(2000)
    for (const each of await Promise.all(visitors)) assert.ok(isOffline(each))
    assert.equal(plane.others.size, 0)
    assert.equal(plane.served.size, 0)
  })

  test('that come back here are served here, and waiting dials are told to look here', async (t) => {
    const pass = clock(t)
    await plane.added(placed('tn_1', 'w2'))
    plane.lost('tn_1')
    const visitor = plane.others.dial(request('tn_1'))
    await pass(500)
    plane.start(placed('tn_1', 'w1'))
    assert.ok(isOffline(await visitor))
    assert.ok(plane.here.has('tn_1'))
    await pass(LONG_MS)
    assert.deepEqual([...plane.served], ['ep_tn_1'], 'the time that ran for the lost one ends nothing')
    plane.removed('tn_1')
    assert.deepEqual([...plane.served], ['ep_tn_1'])
  })

  test('that are here are not changed by outdated news', async () => {
    plane.start(placed('tn_1', 'w1'))
    await plane.added(placed('tn_1', 'w2'))
    plane.lost('tn_1')
    plane.removed('tn_1')
    await plane.all(placed('tn_1', 'w2'))
    assert.equal(plane.others.size, 0)
    assert.deepEqual([...plane.served], ['ep_tn_1'])
  })

  test('that moved during a dial are dialled again at once', async () => {
    await plane.added(placed('tn_1', 'w2'))
    plane.online.set('tn_1', 'w3')
    const usual = plane.relay
    plane.relay = async (planeId, asked) => {
      if (planeId === 'w2') await plane.added(placed('tn_1', 'w3'))
      return usual(planeId, asked)
    }
    assert.equal(await plane.others.dial(request('tn_1')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@w2', 'tn_1@w3'])
  })

  test('that a plane no longer has are waited for until there is news or the time is over', async (t) => {
    const pass = clock(t)
    await plane.added(placed('tn_1', 'w2'), placed('tn_2', 'w2'))
    const visitors = [plane.others.dial(request('tn_1')), plane.others.dial(request('tn_2'))]
    await settled()
    assert.deepEqual(plane.dialled, ['tn_1@w2', 'tn_2@w2'])
    plane.removed('tn_1')
    assert.ok(isOffline(await visitors[0]))
    await pass(LONG_MS)
    assert.ok(isOffline(await visitors[1]))
    assert.deepEqual(plane.dialled, ['tn_1@w2', 'tn_2@w2'])
  })

  test('whose bind is still under way are reached once their plane has them, without further news', async (t) => {
    const pass = clock(t)
    await plane.added(placed('tn_a', 'w2'))
    const dialled = plane.others.dial(request('tn_a'))
    await settled()
    plane.online.set('tn_a', 'w2')
    await pass(50)
    assert.equal(await dialled, stream)
  })

  test('that a new control plane does not know yet stay reachable for a moment', async (t) => {
    const pass = clock(t)
    for (const id of ['tn_1', 'tn_2']) plane.online.set(id, 'w2')
    await plane.added(placed('tn_1', 'w2'), placed('tn_2', 'w2'))
    await plane.all()
    assert.equal(await plane.others.dial(request('tn_1')), stream)
    assert.equal(plane.others.holderOf('tn_1'), undefined, 'its agent may have it here')
    await pass(1000)
    await plane.added(placed('tn_1', 'w2'))
    await pass(LONG_MS)
    assert.equal(await plane.others.dial(request('tn_1')), stream)
    assert.ok(isOffline(await plane.others.dial(request('tn_2'))))
    assert.deepEqual([...plane.served], ['ep_tn_1'])
  })

  test('of groups are members wherever they are, and after they moved here', async (t) => {
    clock(t)
    const web = plane.groups.follow({ app: 'web' })
    const members = () => web.members.map(({ tunnelId }) => tunnelId)
    await plane.added(labelled('tn_1', 'w2'))
    await plane.added(labelled('tn_1', 'w3'))
    assert.deepEqual(members(), ['tn_1'])
    plane.lost('tn_1')
    assert.deepEqual(members(), ['tn_1'], 'the only one is waited for')
    plane.start(labelled('tn_1', 'w1'))
    assert.deepEqual(members(), ['tn_1'])
    await plane.added(labelled('tn_2', 'w2'), labelled('tn_3', 'w2'))
    plane.lost('tn_2', 'tn_3')
    assert.deepEqual(members(), ['tn_1'], 'visitors go to the one that is there')
    plane.end('tn_1')
    assert.deepEqual(members(), [])
    await plane.added(labelled('tn_2', 'w3'))
    assert.deepEqual(members(), ['tn_2'])
  })

  test('leave nothing behind when all are gone, whatever the news, and no visitor waits for ever', async (t) => {
    const pass = clock(t)
    const ids = ['tn_1', 'tn_2', 'tn_3', 'tn_4']
    const make = (id: string, planeId: string) => (id < 'tn_3' ? placed(id, planeId) : labelled(id, planeId))
    const step = fc.record({
      act: fc.constantFrom('added', 'removed', 'lost', 'all', 'start', 'end', 'dial', 'dial', 'pass'),
      id: fc.constantFrom(...ids),
      planeId: fc.constantFrom('w2', 'w3'),
      isTrue: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
        const tried = new Plane()
        const web = tried.groups.follow({ app: 'web' })
        const visitors: Promise<unknown>[] = []
        for (const { act, id, planeId, isTrue } of steps) {
          const tunnel = make(id, planeId)
          if (isTrue) tried.online.set(id, planeId)
          if (act === 'added') void tried.added(tunnel)
          else if (act === 'removed') tried.removed(id)
          else if (act === 'lost') tried.lost(id)
          else if (act === 'all') void tried.all(tunnel)
          else if (act === 'start' && !tried.here.has(id)) tried.start(tunnel)
          else if (act === 'end') tried.end(id)
          else if (act === 'dial') visitors.push(tried.others.dial(request(id)))
          else if (act === 'pass') await pass(isTrue ? 700 : 4000)
          for (const here of tried.here.values()) {
            if (here.labels) assert.ok(web.members.some(({ tunnelId }) => tunnelId === here.id))
            else assert.ok(tried.served.has(`ep_${here.id}`))
          }
        }
        for (const id of tried.here.keys()) tried.end(id)
        void tried.all()
        await pass(LONG_MS)
        await pass(LONG_MS)
        await Promise.all(visitors)
        assert.deepEqual([tried.others.size, tried.served.size, web.members.length], [0, 0, 0])
        assert.deepEqual(tried.groups.find({ app: 'web' }), [])
      }),
      { numRuns: 200 },
    )
  })
})
