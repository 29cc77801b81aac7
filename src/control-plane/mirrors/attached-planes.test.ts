import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, type TestContext, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { Refusal } from '../../model/errors.ts'
import type { BindRules } from '../directory/grant-binds.ts'
import { endpointTunnel, labelTunnel, onlineSession, testReservation } from '../directory/testing/test-online.ts'
import { edge, sealedBy, storeRows, type TestRow, testSealer } from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { AttachedPlanes } from './attached-planes.ts'
import type { SharedCalls } from './shared-calls.ts'
import { TestPlane, testNode } from './testing/test-planes.ts'

const lines: string[] = []
const log = createLog({ level: 'warn', format: 'json', destination: { write: (line) => lines.push(line) } })

const rule = (id: string, policyId: string, network: string): TestRow => ({
  id,
  kind: 'ip_policy_rule',
  parentId: policyId,
  fields: { cidr: network, network, action: 'allow' },
})
const restriction = (id: string, type: string, policyId: string): TestRow => ({
  id,
  kind: 'ip_restriction',
  fields: { type, enforced: true, ip_policy_ids: [policyId] },
})
const certificate = (id: string, name: string): TestRow => ({
  id,
  kind: 'tls_certificate',
  fields: {
    certificate_pem: `cert of ${name}`,
    private_key_pem: 'key',
    not_after: '2030-01-01T00:00:00Z',
    subject_alternative_names: { dns_names: [name], ips: [] },
  },
})

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
const never = () => new Promise<never>(() => {})
const page = { limit: 100 }

describe('the planes of a control plane', () => {
  eachStore(
    (databases) => {
      let store: Store
      let planes: AttachedPlanes
      let checked: number
      let made = 0
      const calls = { secrets: () => assert.fail() } as unknown as SharedCalls
      const bindRules = {} as BindRules

      const attach = async (id: string, given?: Parameters<TestPlane['attach']>[0], own?: object) => {
        const plane = await new TestPlane(planes, id, own).attach(given)
        await plane.ready()
        return plane
      }
      const keep = async (...rows: TestRow[]) => {
        await storeRows(store, rows)
        await store.write(async (writer) => {
          for (const { id, kind, parentId } of rows) {
            if (parentId === undefined) writer.changed(kind, id)
            else writer.changed('ip_policy', parentId)
          }
        })
      }
      /** The test moves the clock from here on, when the store is no longer used: the store's own timers are real. */
      const stopClock = async (t: TestContext): Promise<void> => {
        for (let i = 0; i < 3; i++) {
          await settled()
          await store.feed.latest()
        }
        t.mock.timers.enable({ apis: ['setTimeout'] })
      }
      const name = () => `n${++made}.example.com`

      before(async () => {
        store = await sealedBy(await openStore(await databases.url()))
        await storeRows(store, [
          edge('edgtls_1', 'tls_edge', ['one.example.com:443']),
          { id: 'ipp_1', kind: 'ip_policy', fields: {} },
          rule('ipr_1', 'ipp_1', '192.0.2.0/24'),
          restriction('ipx_1', 'agent', 'ipp_1'),
          certificate('cert_1', 'one.example.com'),
        ])
      })
      after(() => store.close())
      beforeEach(() => {
        checked = 0
        lines.length = 0
        const checkCredentials = async (): Promise<void> => {
          checked++
        }
        planes = new AttachedPlanes({
          store,
          sealer: testSealer,
          log,
          node: testNode,
          calls,
          bindRules,
          checkCredentials,
        })
      })
      afterEach(() => planes.close())

      test('form one node, which has the sessions of all of them and no lease', async () => {
        const [first, second] = [await attach('w1'), await attach('w2')]
        for (const [plane, id] of [[first, 'ts_1'] as const, [second, 'ts_2'] as const]) {
          await plane.link.ask('sessionStarted', onlineSession(id))
        }
        const shown = { ...testNode, sessions: 2, lease: null }
        const { presence } = planes
        assert.deepEqual(await presence.nodes({ limit: 10 }), [shown])
        assert.deepEqual(await presence.nodes({ limit: 10, beforeId: 'nd_6' }), [shown])
        assert.deepEqual(await presence.nodes({ limit: 10, beforeId: 'nd_5' }), [])
        assert.deepEqual(await presence.node('nd_5'), shown)
        assert.equal(await presence.node('nd_4'), undefined)
        await second.link.ask('sessionEnded', { sessionId: 'ts_2' })
        assert.equal((await presence.node('nd_5'))?.sessions, 1)
      })

      test('are sent restrictions, certificates and edges, and only then let visitors in', async () => {
        const ready = planes.whenReady(1)
        const plane = await attach('w1')
        const wanted = ['restrict', 'certificates', 'edges', 'letVisitorsIn']
        assert.deepEqual(
          plane.heard.filter((call) => wanted.includes(call)),
          wanted,
        )
        assert.deepEqual(plane.restrictions, [
          { part: 'agent', isEnforced: true, rules: [{ action: 'allow', network: '192.0.2.0/24' }] },
        ])
        const served = plane.certificates.get('one.example.com')
        assert.deepEqual([served?.id, served?.cert, served?.key], ['cert_1', 'cert of one.example.com', 'key'])
        assert.deepEqual([...plane.edges], ['edgtls_1'])
        await ready
        assert.deepEqual(planes.ready, ['w1'])
      })

      test('are all sent every change', async () => {
        const both = [await attach('w1'), await attach('w2')]
        await keep(edge('edgtls_2', 'tls_edge', ['two.example.com:443']))
        await keep(certificate('cert_2', 'two.example.com'))
        await keep(rule('ipr_2', 'ipp_1', '198.51.100.0/24'))
        for (const plane of both) {
          await plane.until(() => plane.edges.has('edgtls_2') && plane.certificates.has('two.example.com'))
          await plane.until(() => plane.restrictions[0]?.rules.length === 2)
        }
        await store.write(async (writer) => {
          for (const [kind, id] of [
            ['tls_edge', 'edgtls_2'],
            ['tls_certificate', 'cert_2'],
          ] as const) {
            await writer.remove(id)
            writer.changed(kind, id)
          }
          await writer.remove('ipr_2')
          writer.changed('ip_policy', 'ipp_1')
        })
        for (const plane of both) {
          await plane.until(() => !plane.edges.has('edgtls_2') && !plane.certificates.has('two.example.com'))
          await plane.until(() => plane.restrictions[0]?.rules.length === 1)
        }
      })

      test('that come back drop edges that were deleted meanwhile', async () => {
        const plane = new TestPlane(planes, 'w1')
        plane.edges.add('edgtls_deleted')
        await plane.attach()
        await plane.ready()
        assert.deepEqual([...plane.edges], ['edgtls_1'])
      })

      test('must attach before any other call', async () => {
        const plane = new TestPlane(planes, 'w1')
        await assert.rejects(plane.link.ask('claim', testReservation('tn_1', 'ts_1', name())), /must attach first/)
        plane.link.tell('sessionStarted', onlineSession('ts_1'))
        await settled()
        assert.deepEqual(planes.directory.sessions(page), [])
      })

      test('learn of each other and of what each has online', async () => {
        const [at, label] = [name(), { app: 'web' }]
        const first = await attach('w1', {
          sessions: [onlineSession('ts_1')],
          tunnels: [endpointTunnel('tn_1', 'ts_1', at), labelTunnel('tn_2', 'ts_1', label)],
        })
        assert.equal(checked, 1, 'credentials may have been deleted while the plane was away')
        const second = await attach('w2', {
          sessions: [onlineSession('ts_3')],
          tunnels: [labelTunnel('tn_3', 'ts_3', label)],
        })
        assert.deepEqual(Object.fromEntries(second.elsewhere), { tn_1: 'w1', tn_2: 'w1' })
        await first.until(() => first.elsewhere.has('tn_3') && first.planes.length === 1)
        assert.deepEqual([first.planes, second.planes], [['w2'], ['w1']])
        assert.deepEqual(await planes.presence.tunnelsWith(label), ['tn_2', 'tn_3'])

        assert.equal(await second.link.ask('claim', testReservation('tn_9', 'ts_3', at)), false)
        const other = name()
        assert.equal(await second.link.ask('claim', testReservation('tn_4', 'ts_3', other)), true)
        assert.equal(first.elsewhere.get('tn_4'), 'w2', 'served there before the agent is answered')
        await second.link.ask('tunnelStarted', endpointTunnel('tn_4', 'ts_3', other))
        assert.equal((await planes.presence.endpoint('ep_tn_4'))?.hostport, `${other}:443`)
        second.link.tell('tunnelEnded', { tunnelId: 'tn_4' })
        await first.until(() => !first.elsewhere.has('tn_4'))
        assert.deepEqual(first.lost, [])
      })

      test('that are gone are reported to the others with all they had', async () => {
        const first = await attach('w1')
        const second = await attach('w2', {
          sessions: [onlineSession('ts_1')],
          tunnels: [labelTunnel('tn_1', 'ts_1', { app: 'web' })],
        })
        await second.link.ask('claim', testReservation('tn_2', 'ts_1', name()))
        second.link.close()
        await first.until(() => first.planes.length === 0 && first.lost.length === 2)
        assert.deepEqual(first.lost.toSorted(), ['tn_1', 'tn_2'])
        assert.deepEqual(planes.ready, ['w1'])
        assert.deepEqual(planes.directory.sessions(page), [])
        assert.equal(planes.credentialsInUse().size, 0)
      })

      test('that are slow or stuck do not keep an agent from its address', async (t) => {
        const first = await attach('w1')
        await attach('w2', {}, { elsewhere: (change: { isAll: boolean }) => (change.isAll ? undefined : never()) })
        await stopClock(t)
        first.link.tell('sessionStarted', onlineSession('ts_1'))
        const claiming = first.link.ask('claim', testReservation('tn_1', 'ts_1', name()))
        await settled()
        t.mock.timers.tick(5000)
        assert.equal(await claiming, true)
        assert.match(lines.join(''), /did not confirm a tunnel in time/)
      })

      test('that attach again under the same id take over, and their former link is ignored', async () => {
        const other = await attach('w2')
        const former = await attach('w1', { sessions: [onlineSession('ts_1')] })
        const again = await attach('w1', { sessions: [onlineSession('ts_2')] })
        former.link.tell('sessionStarted', onlineSession('ts_9'))
        await former.link.closed
        await settled()
        assert.deepEqual(
          planes.directory.sessions(page).map(({ id }) => id),
          ['ts_2'],
        )
        assert.deepEqual([...planes.ready].sort(), ['w1', 'w2'])
        assert.equal(again.link.isClosed, false)
        assert.deepEqual(other.planes, ['w1'])
      })

      test('that were away give up what other planes have by now', async () => {
        const at = name()
        const first = await attach('w1')
        first.link.tell('sessionStarted', onlineSession('ts_1'))
        first.link.tell('sessionStarted', onlineSession('ts_2'))
        assert.ok(await first.link.ask('claim', testReservation('tn_1', 'ts_1', at)))
        const late = await attach('w2', {
          sessions: [onlineSession('ts_2'), onlineSession('ts_3')],
          tunnels: [endpointTunnel('tn_3', 'ts_3', at)],
        })
        await late.until(() => late.stopped.length > 0)
        assert.deepEqual([late.ended, late.stopped], [['ts_2'], ['tn_3']])
        assert.equal(planes.directory.planeOf('ts_2'), 'w1')
        assert.deepEqual(planes.directory.holdersOf(`secure:${at}`), ['ts_1'])
        assert.equal(first.elsewhere.size, 0)
      })

      test('end the session of an agent that comes back, wherever it is, and return its label tunnels', async () => {
        const labels = { app: 'web' }
        const first = await attach('w1', {
          sessions: [onlineSession('ts_1')],
          tunnels: [labelTunnel('tn_1', 'ts_1', labels)],
        })
        const second = await attach('w2')
        const former = [{ id: 'tn_1', labels, startedAt: 1 }]
        assert.deepEqual(await second.link.ask('returning', { sessionId: 'ts_1' }), former)
        assert.deepEqual(first.ended, ['ts_1'])
        assert.deepEqual(await second.link.ask('returning', { sessionId: 'ts_1' }), [])
        assert.deepEqual(await second.link.ask('returning', { sessionId: 'ts_unheard' }), [])
      })

      test('that drain keep moving sessions until these have ended', async () => {
        const labels = { app: 'web' }
        const first = await attach('w1', {
          sessions: [onlineSession('ts_1')],
          tunnels: [labelTunnel('tn_1', 'ts_1', labels)],
        })
        const second = await attach('w2')
        await first.link.ask('leaving', null)
        const moving = [{ id: 'tn_1', labels, startedAt: 1 }]
        assert.deepEqual(await second.link.ask('returning', { sessionId: 'ts_1', isMoving: true }), moving)
        await second.link.ask('sessionStarted', onlineSession('ts_1'))
        await second.link.ask('tunnelStarted', labelTunnel('tn_1', 'ts_1', labels))
        assert.deepEqual(first.ended, [])
        assert.equal(first.elsewhere.get('tn_1'), 'w2')
        planes.endSessionsOf('cr_1', 'its credential was deleted')
        await Promise.all([first, second].map((each) => each.until(() => each.ended.includes('ts_1'))))
      })

      test('that are stuck do not keep an agent from coming back with its label tunnels', async (t) => {
        const labels = { app: 'web' }
        await attach(
          'w1',
          { sessions: [onlineSession('ts_1')], tunnels: [labelTunnel('tn_1', 'ts_1', labels)] },
          { endSession: never },
        )
        const second = await attach('w2')
        await stopClock(t)
        const returning = second.link.ask('returning', { sessionId: 'ts_1' })
        await settled()
        t.mock.timers.tick(2500)
        assert.deepEqual(await returning, [{ id: 'tn_1', labels, startedAt: 1 }])
        await second.until(() => !second.elsewhere.has('tn_1'))
      })

      test('ask the holder of a place for a sign of life', async () => {
        const at = name()
        let isAlive = true
        const first: TestPlane = await attach(
          'w1',
          {},
          {
            proveAlive: async ({ sessionId }: { sessionId: string }) => {
              if (!isAlive) first.link.tell('sessionEnded', { sessionId })
            },
          },
        )
        const second = await attach('w2')
        const place = `secure:${at}`
        assert.equal(await second.link.ask('proveAlive', { place }), true, 'nobody has it')
        first.link.tell('sessionStarted', onlineSession('ts_1'))
        await first.link.ask('claim', testReservation('tn_1', 'ts_1', at))
        await first.link.ask('tunnelStarted', endpointTunnel('tn_1', 'ts_1', at))
        assert.equal(await second.link.ask('proveAlive', { place }), false)
        isAlive = false
        assert.equal(await second.link.ask('proveAlive', { place }), true)
        assert.equal(await second.link.ask('claim', testReservation('tn_2', 'ts_2', at)), true)
      })

      test('carry commands to the plane of a session, and refusals back', async (t) => {
        const got: string[] = []
        const command = async (to: { sessionId: string; command: string }): Promise<void> => {
          got.push(`${to.command} ${to.sessionId}`)
          if (to.command === 'update') throw new Refusal('COMMAND_REFUSED', 'not now')
          if (to.command === 'restart') await never()
        }
        await attach('w1')
        const second = await attach('w2', { sessions: [onlineSession('ts_1')] }, { command })
        const { presence } = planes
        await presence.command('ts_1', 'stop')
        await assert.rejects(presence.command('ts_1', 'update'), { code: 'COMMAND_REFUSED', message: 'not now' })
        await assert.rejects(presence.command('ts_unheard', 'stop'), { code: 'NOT_FOUND' })
        await stopClock(t)
        const late = presence.command('ts_1', 'restart')
        await settled()
        t.mock.timers.tick(60_000)
        await assert.rejects(late, { code: 'COMMAND_TIMEOUT' })
        const cut = presence.command('ts_1', 'restart')
        await settled()
        second.link.close()
        await assert.rejects(cut, { code: 'COMMAND_FAILED' })
        assert.equal(got.length, 4)
      })

      test('end the sessions of a credential or certificate, each at its plane', async () => {
        const first = await attach('w1', { sessions: [onlineSession('ts_1', 'cr_1'), onlineSession('ts_2', 'cr_2')] })
        const second = await attach('w2', { sessions: [onlineSession('ts_3', 'cr_1', 'crt_1')] })
        assert.deepEqual([...planes.credentialsInUse()].sort(), ['cr_1', 'cr_2'])
        assert.deepEqual([...planes.certificatesInUse()], ['crt_1'])
        planes.endSessionsOf('cr_1', 'deleted')
        await first.until(() => first.ended.length > 0)
        await second.until(() => second.ended.length > 0)
        assert.deepEqual([first.ended, second.ended], [['ts_1'], ['ts_3']])
        planes.endSessionsBy('crt_1', 'deleted')
        assert.deepEqual([...planes.certificatesInUse()], [])
      })

      test('tell the others which tunnels were stopped', async () => {
        const [first, second] = [await attach('w1'), await attach('w2')]
        first.link.tell('tunnelStopped', { tunnelId: 'tn_1' })
        await second.until(() => second.stopped.length > 0)
        assert.deepEqual([first.stopped, second.stopped], [[], ['told tn_1']])
      })

      test('are told that logins ended; a plane that is stuck or gone does not hold up the others', async (t) => {
        const first = await attach('w1')
        await attach('w2', {}, { loginsEnded: (given: { isAll: boolean }) => (given.isAll ? undefined : never()) })
        await stopClock(t)
        const ending = planes.loginsEnded({ isAll: false, ids: ['a'], userIds: [] })
        await settled()
        assert.equal(first.heard.at(-1), 'loginsEnded')
        t.mock.timers.tick(5000)
        await ending
      })

      test('are sent all configuration once the store is back', async (t) => {
        const { mock } = t.mock.method(store, 'read')
        let left = 3
        const read = store.read.bind(store)
        mock.restore()
        t.mock.method(store, 'read', (...given: Parameters<Store['read']>) =>
          left-- > 0 ? Promise.reject(new Error('the database is away')) : read(...given),
        )
        const plane = await attach('w1')
        assert.deepEqual([...plane.edges], ['edgtls_1'])
        assert.ok(plane.certificates.has('one.example.com'))
        assert.match(lines.join(''), /cannot load the configuration for a data plane; retrying/)
        assert.deepEqual(planes.ready, ['w1'])
      })

      test('that go while the store is down are not waited for', async (t) => {
        t.mock.method(store, 'read', () => Promise.reject(new Error('the database is away')))
        const plane = await new TestPlane(planes, 'w1').attach()
        plane.link.close()
        await plane.link.closed
        await settled()
        assert.deepEqual(planes.ready, [])
        const waiting = planes.whenReady(1)
        await planes.close()
        await waiting
      })

      test('that are gone keep their totals, which count once when they come back', async () => {
        const failures = async () => (await planes.metrics()).totals.failures
        const [first, second] = [await attach('w1'), await attach('w2')]
        first.failures = 5
        second.failures = 7
        assert.equal(await failures(), 12)
        first.link.close()
        await first.link.closed
        await settled()
        assert.equal(await failures(), 12)
        const again = await attach('w1')
        again.failures = 6
        assert.equal(await failures(), 13)
        again.link.close()
        await again.link.closed
        await settled()
        assert.equal(await failures(), 13)
        for (let i = 0; i < 80; i++) {
          const brief = await new TestPlane(planes, `x${i}`).attach()
          brief.failures = 1
          await failures()
          brief.link.close()
          await brief.link.closed
        }
        await settled()
        assert.equal(await failures(), 93)
      })

      test('that do not answer keep their last numbers', async (t) => {
        let isStuck = false
        const plane: TestPlane = await attach('w1')
        plane.failures = 3
        await planes.metrics()
        const stuck = await attach('w2', {}, { metrics: () => (isStuck ? never() : assert.fail('none yet')) })
        assert.equal((await planes.metrics()).totals.failures, 3)
        isStuck = true
        await stopClock(t)
        const asking = planes.metrics()
        await settled()
        t.mock.timers.tick(5000)
        assert.equal((await asking).totals.failures, 3)
        stuck.link.close()
      })

      test('go on with what they have when the control plane closes', async () => {
        const [first, second] = [
          await attach('w1', { sessions: [onlineSession('ts_1')], tunnels: [endpointTunnel('tn_1', 'ts_1', name())] }),
          await attach('w2'),
        ]
        assert.equal(second.elsewhere.size, 1)
        await planes.close()
        await Promise.all([first.link.closed, second.link.closed])
        await settled()
        assert.equal(second.elsewhere.size, 1)
        assert.deepEqual(second.lost, [])
      })
    },
    ['sqlite'],
  )
})
