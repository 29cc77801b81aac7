import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { OnlineTunnel, WorkerTunnel } from '../../link/planes/plane-calls.ts'
import { Directory } from './directory.ts'
import { endpointTunnel, labelTunnel, onlineSession, servedAt, testReservation } from './testing/test-online.ts'

const planes = ['w1', 'w2', 'w3'] as const
const sessions = ['ts_1', 'ts_2', 'ts_3'] as const
const credentials = ['cr_1', 'cr_2'] as const

/** The tunnels, whoever has them: two share a name, and two have the same labels. */
const names: Readonly<Record<string, string>> = { tn_1: 'a.example.com', tn_2: 'a.example.com', tn_3: 'b.example.com' }
const labels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tn_4: { app: 'web' },
  tn_5: { app: 'web', zone: 'x' },
}
const tunnels = [...Object.keys(names), ...Object.keys(labels)]

function onlineTunnel(id: string, sessionId: string): OnlineTunnel {
  const name = names[id]
  return name === undefined ? labelTunnel(id, sessionId, labels[id] ?? {}) : endpointTunnel(id, sessionId, name)
}

type Step = {
  readonly act: 'start' | 'end' | 'claim' | 'unclaim' | 'online' | 'offline' | 'change' | 'detach' | 'attach' | 'former'
  readonly plane: string
  /** Uses the plane of the session, if it has one; otherwise most commands would do nothing. */
  readonly isAtHome: boolean
  readonly session: string
  readonly credential: string
  readonly tunnel: string
}

const step: fc.Arbitrary<Step> = fc.record({
  act: fc.constantFrom(
    ...(['start', 'start', 'end', 'claim', 'claim', 'unclaim', 'online', 'online', 'online'] as const),
    ...(['offline', 'change', 'detach', 'attach', 'former'] as const),
  ),
  plane: fc.constantFrom(...planes),
  isAtHome: fc.boolean(),
  session: fc.constantFrom(...sessions),
  credential: fc.constantFrom(...credentials),
  tunnel: fc.constantFrom(...tunnels),
})

interface At {
  readonly plane: string
  readonly session: string
}

/** The simplest possible directory. */
class Model {
  readonly sessions = new Map<string, { readonly plane: string; readonly credential: string }>()
  readonly tunnels = new Map<string, At>()
  readonly places = new Map<string, At & { readonly tunnel: string }>()
  /** What was online at planes that are gone. */
  readonly away = new Map<string, { readonly sessions: Model['sessions']; readonly tunnels: Model['tunnels'] }>()

  holds(tunnel: string, plane: string): boolean {
    const held = this.places.get(names[tunnel] ?? '')
    return held?.tunnel === tunnel && held.plane === plane
  }

  offline(tunnel: string): void {
    const at = this.tunnels.get(tunnel)
    this.tunnels.delete(tunnel)
    if (at && this.holds(tunnel, at.plane)) this.places.delete(names[tunnel] ?? '')
  }

  end(session: string): void {
    this.sessions.delete(session)
    for (const [id, at] of this.tunnels) if (at.session === session) this.offline(id)
  }

  detach(plane: string): void {
    const here = <T extends { readonly plane: string }>(all: Map<string, T>) =>
      new Map([...all].filter(([, at]) => at.plane === plane))
    const gone = { sessions: here(this.sessions), tunnels: here(this.tunnels) }
    this.away.set(plane, gone)
    for (const id of gone.sessions.keys()) this.end(id)
    for (const id of here(this.places).keys()) this.places.delete(id)
  }

  /** What a plane has that belongs to others by now. */
  attach(plane: string) {
    const back = this.away.get(plane)
    const superseded = { sessions: [] as string[], tunnels: [] as string[] }
    this.away.delete(plane)
    for (const [id, at] of back?.sessions ?? []) {
      if (this.sessions.has(id)) superseded.sessions.push(id)
      else this.sessions.set(id, at)
    }
    for (const [tunnel, at] of back?.tunnels ?? []) {
      if (superseded.sessions.includes(at.session)) continue
      const place = names[tunnel]
      if (this.tunnels.has(tunnel) || (place && this.places.has(place))) superseded.tunnels.push(tunnel)
      else {
        this.tunnels.set(tunnel, at)
        if (place) this.places.set(place, { ...at, tunnel })
      }
    }
    return { back, superseded }
  }

  /** What other planes have, as this one needs it. */
  ofOtherPlanes(plane: string): string[] {
    const labelled = [...this.tunnels].filter(([id, at]) => labels[id] && at.plane !== plane)
    const placed = [...this.places.values()].filter((at) => at.plane !== plane)
    return [
      ...labelled.map(([id, at]) => `${id} ${at.plane}`),
      ...placed.map((at) => `${at.tunnel} ${at.plane}`),
    ].sort()
  }
}

/** A directory, and what each plane knows from its messages. */
class SentToPlanes {
  readonly known = new Map<string, Map<string, string>>(planes.map((plane) => [plane, new Map<string, string>()]))
  readonly directory: Directory
  /** Messages that changed nothing. */
  idle = 0

  constructor(isAway: (plane: string) => boolean) {
    const others = (planeId: string) => [...this.known].filter(([id]) => id !== planeId && !isAway(id))
    this.directory = new Directory({
      added: async ({ tunnelId, planeId }) => {
        for (const [, known] of others(planeId)) known.set(tunnelId, planeId)
      },
      sessionOver() {},
      removed: ({ tunnelId, planeId }) => {
        for (const [, known] of others(planeId)) if (!known.delete(tunnelId)) this.idle++
      },
    })
  }

  /** Attaches a plane: it is told everything, and others are told what it has. */
  attached(plane: string): void {
    const text = (all: readonly WorkerTunnel[]) => all.map((each) => [each.tunnelId, each.planeId] as const)
    this.known.set(plane, new Map(text(this.directory.ofOtherPlanes(plane))))
    for (const [id, known] of this.known) {
      if (id !== plane) for (const [tunnel, at] of text(this.directory.ofPlane(plane))) known.set(tunnel, at)
    }
  }
}

const page = { limit: 100 }
const idsOf = (all: readonly { readonly id: string }[]) => all.map(({ id }) => id).sort()

function compare(directory: Directory, model: Model): void {
  assert.deepEqual(idsOf(directory.sessions(page)), [...model.sessions.keys()].sort())
  assert.deepEqual(idsOf(directory.tunnels(page)), [...model.tunnels.keys()].sort())
  const present = [...model.tunnels.keys()].filter((id) => names[id]).map((id) => `ep_${id}`)
  assert.deepEqual(idsOf(directory.endpoints(page)), present.sort())
  for (const id of sessions) assert.equal(directory.planeOf(id), model.sessions.get(id)?.plane)
  for (const credential of credentials) {
    const using = [...model.sessions].filter(([, each]) => each.credential === credential).map(([id]) => id)
    assert.deepEqual([...directory.sessionsOf(credential)].sort(), using.sort())
    assert.equal(directory.credentialsInUse().has(credential), using.length > 0)
  }
  for (const name of new Set(Object.values(names))) {
    const held = model.places.get(name)
    assert.deepEqual(directory.holdersOf(`secure:${name}`), held ? [held.session] : [])
    assert.equal(directory.endpointAt({ name }), held && `ep_${held.tunnel}`)
  }
  for (const id of Object.keys(names)) {
    const isHeld = [...model.places.values()].some(({ tunnel }) => tunnel === id)
    assert.equal(directory.endpointConfig(`ep_${id}`)?.id, isHeld ? `ep_${id}` : undefined)
  }
  const web = [...model.tunnels.keys()].filter((id) => labels[id])
  assert.deepEqual(directory.tunnelsWith({ app: 'web' }), web.sort())
  for (const plane of planes) {
    const found = directory.ofOtherPlanes(plane).map(({ tunnelId, planeId }) => `${tunnelId} ${planeId}`)
    assert.deepEqual(found.sort(), model.ofOtherPlanes(plane))
  }
}

async function take(each: Step, sent: SentToPlanes, model: Model): Promise<void> {
  const { directory } = sent
  const { act, session, credential, tunnel } = each
  const plane = (each.isAtHome && model.sessions.get(session)?.plane) || each.plane
  const place = names[tunnel]
  if (model.away.has(plane) && act !== 'attach') return
  const isHere = model.sessions.get(session)?.plane === plane
  if (act === 'start') {
    const before = model.sessions.get(session)
    if (before && before.plane !== plane) model.end(session)
    model.sessions.set(session, { plane, credential })
    directory.sessionStarted(plane, onlineSession(session, credential))
  } else if (act === 'end') {
    if (isHere) model.end(session)
    directory.sessionEnded(plane, session)
  } else if (act === 'claim' && place && isHere) {
    const held = model.places.get(place)
    const isGiven = !held || held.tunnel === tunnel || (held.session === session && held.plane !== plane)
    assert.equal(await directory.reserve(plane, testReservation(tunnel, session, place)), isGiven)
    if (!isGiven) return
    if (held) model.tunnels.delete(held.tunnel)
    model.places.set(place, { plane, session, tunnel })
  } else if (act === 'unclaim' && place) {
    if (model.holds(tunnel, plane)) model.places.delete(place)
    directory.release(plane, { place: `secure:${place}`, tunnelId: tunnel })
  } else if (act === 'online' && isHere) {
    const held = place && model.places.get(place)
    if (held && (!model.holds(tunnel, plane) || held.session !== session)) return
    model.tunnels.set(tunnel, { plane, session })
    if (place) model.places.set(place, { plane, session, tunnel })
    // As `WorkerTunnels.cameHere` does.
    sent.known.get(plane)?.delete(tunnel)
    await directory.tunnelStarted(plane, onlineTunnel(tunnel, session))
  } else if (act === 'offline') {
    if (model.tunnels.get(tunnel)?.plane === plane) model.offline(tunnel)
    directory.tunnelEnded(plane, tunnel)
  } else if (act === 'change') {
    const at = model.tunnels.get(tunnel)
    directory.tunnelChanged(plane, onlineTunnel(tunnel, at?.session ?? session))
  } else if (act === 'detach') {
    model.detach(plane)
    directory.detached(plane)
  } else if (act === 'attach' && model.away.has(plane)) {
    const { back, superseded } = model.attach(plane)
    const found = directory.attached(
      plane,
      [...(back?.sessions ?? [])].map(([id, at]) => onlineSession(id, at.credential)),
      [...(back?.tunnels ?? [])].map(([id, at]) => onlineTunnel(id, at.session)),
    )
    assert.deepEqual(found, superseded)
    sent.attached(plane)
  } else if (act === 'former') directory.formerLabels(session)
}

describe('the directory', () => {
  test('agrees with a plain model, and every plane knows what others have', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 100, size: 'max' }), async (steps) => {
        const model = new Model()
        const sent = new SentToPlanes((plane) => model.away.has(plane))
        const check = (): void => {
          compare(sent.directory, model)
          for (const [plane, known] of sent.known) {
            if (model.away.has(plane)) continue
            assert.deepEqual([...known].map(([id, at]) => `${id} ${at}`).sort(), model.ofOtherPlanes(plane), plane)
          }
        }
        for (const each of steps) {
          await take(each, sent, model)
          check()
        }
        assert.equal(sent.idle, 0)
        // A claim may be left that was never given up; it goes with its plane.
        for (const plane of planes) {
          model.detach(plane)
          sent.directory.detached(plane)
        }
        compare(sent.directory, new Model())
      }),
      { numRuns: 600 },
    )
  })

  const quiet = () => {
    const heard: string[] = []
    const directory = new Directory({
      added: async ({ tunnelId, planeId }) => void heard.push(`+${tunnelId}@${planeId}`),
      sessionOver() {},
      removed: ({ tunnelId, planeId, isLost }) => void heard.push(`${isLost ? '?' : '-'}${tunnelId}@${planeId}`),
    })
    const news = () => heard.splice(0)
    return { directory, news }
  }

  test('reports once that an endpoint is gone, in whichever order its plane reports it', async () => {
    for (const isEndFirst of [true, false]) {
      const { directory, news } = quiet()
      directory.sessionStarted('w1', onlineSession('ts_1'))
      const reservation = testReservation('tn_1', 'ts_1', 'a.example.com')
      assert.ok(await directory.reserve('w1', reservation))
      await directory.tunnelStarted('w1', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
      assert.deepEqual(news(), ['+tn_1@w1'])
      if (isEndFirst) directory.tunnelEnded('w1', 'tn_1')
      directory.release('w1', reservation)
      directory.tunnelEnded('w1', 'tn_1')
      directory.sessionEnded('w1', 'ts_1')
      assert.deepEqual(news(), ['-tn_1@w1'])
    }
  })

  test('reports a claim as lost with its plane even if its tunnel never came online', async () => {
    const { directory, news } = quiet()
    directory.sessionStarted('w1', onlineSession('ts_1'))
    await directory.reserve('w1', testReservation('tn_1', 'ts_1', 'a.example.com'))
    news()
    directory.detached('w1')
    assert.deepEqual(news(), ['?tn_1@w1'])
    assert.deepEqual(directory.ofOtherPlanes('w2'), [])
  })

  test('refuses a claim that was overtaken while other planes were told', async () => {
    const late = Promise.withResolvers<void>()
    let count = 0
    const directory = new Directory({
      added: () => (++count === 1 ? late.promise : Promise.resolve()),
      removed() {},
      sessionOver() {},
    })
    directory.sessionStarted('w1', onlineSession('ts_1'))
    const first = directory.reserve('w1', testReservation('tn_1', 'ts_1', 'a.example.com'))
    directory.sessionStarted('w2', onlineSession('ts_1'))
    assert.equal(await directory.reserve('w2', testReservation('tn_1', 'ts_1', 'a.example.com')), true)
    late.resolve()
    assert.equal(await first, false)
    assert.deepEqual(
      directory.ofPlane('w2').map(({ tunnelId }) => tunnelId),
      ['tn_1'],
    )
  })

  test('of two tunnels of a session that ask for one address at the same moment, the first gets it', async () => {
    const { directory } = quiet()
    directory.sessionStarted('w1', onlineSession('ts_1'))
    const ask = (tunnelId: string) => directory.reserve('w1', testReservation(tunnelId, 'ts_1', 'a.example.com'))
    assert.deepEqual(await Promise.all([ask('tn_1'), ask('tn_2')]), [true, false])
    directory.sessionStarted('w2', onlineSession('ts_1'))
    assert.equal(await directory.reserve('w2', testReservation('tn_2', 'ts_1', 'a.example.com')), true)
  })

  test('holds the place of a tunnel whose claim an earlier control plane granted, and tells others', async () => {
    const { directory, news } = quiet()
    directory.sessionStarted('w1', onlineSession('ts_1'))
    await directory.tunnelStarted('w1', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
    assert.deepEqual(news(), ['+tn_1@w1'])
    assert.equal(await directory.reserve('w2', testReservation('tn_9', 'ts_9', 'a.example.com')), false)
  })

  test('does not take over what another plane has by now, and reports it', async () => {
    const { directory, news } = quiet()
    // While w1 is away, one of its agents comes back to w2, another gets a name of w1's, and a third a tunnel.
    directory.sessionStarted('w2', onlineSession('ts_1'))
    directory.sessionStarted('w2', onlineSession('ts_9'))
    await directory.reserve('w2', testReservation('tn_9', 'ts_9', 'a.example.com'))
    await directory.tunnelStarted('w2', labelTunnel('tn_3', 'ts_9', { app: 'web' }))
    news()
    const superseded = directory.attached(
      'w1',
      [onlineSession('ts_1'), onlineSession('ts_2')],
      [
        endpointTunnel('tn_1', 'ts_1', 'c.example.com'),
        endpointTunnel('tn_2', 'ts_2', 'a.example.com'),
        labelTunnel('tn_3', 'ts_2', { app: 'web' }),
        endpointTunnel('tn_4', 'ts_2', 'd.example.com'),
      ],
    )
    assert.deepEqual(superseded, { sessions: ['ts_1'], tunnels: ['tn_2', 'tn_3'] })
    assert.equal(directory.planeOf('ts_1'), 'w2')
    assert.deepEqual(directory.holdersOf('secure:a.example.com'), ['ts_9'])
    assert.deepEqual(
      directory.ofPlane('w1').map(({ tunnelId }) => tunnelId),
      ['tn_4'],
    )
    directory.detached('w1')
    assert.deepEqual(news(), ['?tn_4@w1'])
  })

  test('returns the label tunnels of a session that ended or was lost, once', async () => {
    const { directory } = quiet()
    for (const isLost of [false, true]) {
      directory.sessionStarted('w1', onlineSession('ts_1'))
      await directory.tunnelStarted('w1', labelTunnel('tn_1', 'ts_1', { app: 'web' }))
      if (isLost) directory.detached('w1')
      else directory.sessionEnded('w1', 'ts_1')
      assert.deepEqual(directory.formerLabels('ts_1'), [{ id: 'tn_1', labels: { app: 'web' }, startedAt: 1 }])
      assert.deepEqual(directory.formerLabels('ts_1'), [])
    }
  })

  test('finds sessions by their certificate, and the HTTP version of a tunnel by its plan', async () => {
    const { directory } = quiet()
    directory.sessionStarted('w1', onlineSession('ts_1', 'cr_1', 'crt_1'))
    directory.sessionStarted('w2', onlineSession('ts_2', 'cr_1', 'crt_1'))
    directory.sessionStarted('w2', onlineSession('ts_3'))
    assert.deepEqual([...directory.sessionsByCertificate()], [['crt_1', ['ts_1', 'ts_2']]])
    const config = servedAt('tn_1', 'a.example.com', 2)
    await directory.reserve('w1', { ...testReservation('tn_1', 'ts_1', 'a.example.com'), config })
    assert.equal(directory.ofOtherPlanes('w2')[0]?.httpVersion, 2)
  })

  test('finds the endpoint below a wildcard that the wildcard would displace', async () => {
    const { directory } = quiet()
    await directory.reserve('w1', testReservation('tn_1', 'ts_1', 'a.example.com'))
    await directory.reserve('w1', { ...testReservation('tn_2', 'ts_1', 'b.example.org'), isUnnamed: false })
    assert.equal(directory.endpointAt({ name: '*.example.com' }), 'ep_tn_1')
    assert.equal(directory.endpointAt({ name: '*.example.org' }), undefined)
    assert.equal(directory.endpointAt({ name: 'b.example.org' }), 'ep_tn_2')
    assert.equal(directory.endpointAt({ port: 80 }), undefined)
  })
})
