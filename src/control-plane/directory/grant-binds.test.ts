import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import type { Reservation } from '../../link/planes/plane-calls.ts'
import type { AgentCredential } from '../../model/agent-credential.ts'
import { type AddressHolders, type BindQuestion, BindRefusal, type ServedEndpoint } from '../../model/endpoint.ts'
import { Directory } from './directory.ts'
import { type BindRules, Binds } from './grant-binds.ts'
import { endpointTunnel, onlineSession, testReservation } from './testing/test-online.ts'

const bind: BindQuestion = {
  ...{ id: 'ep_1', proto: 'https', host: 'a.test', port: undefined, place: 'secure:a.test', hostport: 'a.test:443' },
  tunnel: { kind: 'tunnel', tunnelId: 'tn_1', httpVersion: 1, proxyHeader: 0 },
  ...{ sessionId: 'ts_1', credentialId: 'cr_1', opts: {}, isRandom: false, isPooled: false, served: undefined },
}

const portBind: BindQuestion = { ...bind, proto: 'tcp', port: 20_001, place: ':20001', hostport: 'a.test:20001' }

/** The same bind of another agent. */
const byAnother = (n: number, given: BindQuestion = bind): BindQuestion => ({
  ...given,
  ...{ id: `ep_${n}`, sessionId: `ts_${n}`, tunnel: { ...given.tunnel, tunnelId: `tn_${n}` } },
})

interface Around {
  readonly key?: string
  readonly guard?: string
  readonly held?: Partial<AddressHolders>
  /** Null when it was deleted. */
  readonly credential?: AgentCredential | null
  readonly rules?: Partial<BindRules>
}

/** The binds of a node with this key. */
function start({ key = 'key', guard = '', held, credential, rules }: Around = {}) {
  const directory = new Directory({ added: async () => {}, removed() {}, sessionOver() {} })
  const logged: string[] = []
  const all: BindRules = {
    credential: async (id) => (credential === null ? undefined : (credential ?? { id, acl: [], ownerId: 'usr_1' })),
    modules: async () => ({ edge: {}, route: guard === '' ? {} : { basic_auth: guard } }),
    isKeptName: (name) => name.startsWith('api.'),
    holders: async () => ({ edgeId: undefined, reservationId: undefined, ...held }),
    digest: (text) => createHmac('sha256', key).update(text).digest('base64url'),
    domain: 'example.test',
    whyTakenInCluster: async () => undefined,
    isFreedInCluster: async () => false,
    log: createLog({ level: 'debug', format: 'json', destination: { write: (line) => logged.push(line) } }),
    ...rules,
  }
  const binds = new Binds(all, directory)
  return { binds, directory, logged, ask: (asked: BindQuestion, planeId = 'w1') => binds.grant(() => planeId, asked) }
}

/** What is served for an agent that comes to a node with this key. */
async function served(asked: BindQuestion, around: Around = {}): Promise<ServedEndpoint> {
  return start(around).ask(asked)
}

async function refused(asking: Promise<unknown>): Promise<BindRefusal> {
  return asking.then(
    () => assert.fail('it was granted'),
    (error: unknown) => (error instanceof BindRefusal ? error : assert.fail(String(error))),
  )
}

test('a name that an edge or an agent ingress has is refused, and the agent is told whose it is', async () => {
  for (const [edgeId, whose] of [
    ['edghts_1', 'the edge edghts_1'],
    ['agin_1', 'the agent ingress agin_1'],
  ] as const) {
    const refusal = await refused(start({ held: { edgeId } }).ask(bind))
    assert.deepEqual([refusal.ngrok, refusal.isTaken], [381, true])
    assert.equal(refusal.message, `a.test:443 belongs to ${whose}; detach it there, or ask for another`)
  }
})

test('a name of the server is refused, unless it was reserved before; a TCP address only has a port', async () => {
  const own = { ...bind, host: 'api.test', hostport: 'api.test:443', place: 'secure:api.test' }
  const refusal = await refused(start().ask(own))
  assert.deepEqual([refusal.ngrok, refusal.isTaken], [381, false])
  assert.equal((await served(own, { held: { reservationId: 'rd_1' } })).config.names[0], 'api.test')
  await served({ ...portBind, host: 'api.test' })
})

test('of several reasons for a refusal the first is told, in a fixed order', async () => {
  const fail = async () => assert.fail('asked too early')
  const away: Partial<BindRules> = { credential: async () => Promise.reject(new Error('the store is away')) }
  const dear = new BindRefusal(301, 'The options are too costly.')
  const wildcard = { name: '*.test', holderId: 'rd_1' }
  const denied = { id: 'cr_1', acl: ['bind:b.test'] }
  const tooDear: Partial<BindRules> = { modules: () => Promise.reject(dear) }
  const random = { ...bind, isRandom: true }
  const taken = { ...bind, served: { edgeId: 'ep_9', isRemote: false } }
  const rows: [BindQuestion, Around, ngrok: number, isTaken: boolean][] = [
    [bind, { rules: { ...away, modules: fail } }, 802, false],
    [bind, { credential: null, rules: { modules: fail } }, 300, false],
    [bind, { credential: denied, rules: { ...tooDear, holders: fail } }, 316, false],
    [random, { credential: denied, rules: tooDear }, 316, false],
    [portBind, { credential: denied, rules: tooDear }, 308, false],
    [{ ...portBind, isRandom: true }, { credential: denied, rules: tooDear }, 356, false],
    [bind, { held: { edgeId: 'edghts_1' }, rules: { ...tooDear, holders: fail } }, 301, false],
    [bind, { held: { edgeId: 'edghts_1', unproven: 'It is not proven.' } }, 381, true],
    [bind, { held: { unproven: 'It is not proven.', wildcard } }, 320, false],
    [bind, { held: { wildcard } }, 381, false],
    [random, { held: { reservationId: 'rd_1' } }, 334, true],
    [taken, {}, 334, true],
  ]
  for (const [asked, around, ngrok, isTaken] of rows) {
    const refusal = await refused(start(around).ask(asked))
    assert.deepEqual([refusal.ngrok, refusal.isTaken], [ngrok, isTaken], refusal.message)
  }
})

test('a credential that cannot be looked up is logged', async () => {
  const { ask, logged } = start({ rules: { credential: async () => Promise.reject(new Error('the store is away')) } })
  await refused(ask(bind))
  assert.match(logged.join(), /"session":"ts_1".*the store is away.*credential cannot be looked up/)
})

test('an endpoint belongs to the owner of its credential, or to a credential without a known owner', async () => {
  assert.equal((await served(bind)).config.ownerId, 'usr_1')
  const { config, pool } = await served({ ...bind, isPooled: true }, { credential: { id: 'cr_1', acl: [] } })
  assert.deepEqual([config.ownerId, pool?.ownerId], ['cr_1', 'cr_1'])
})

test('a name below a wildcard needs a rule or a reservation of its own', async () => {
  const wildcard = { name: '*.test', holderId: 'rd_1' }
  assert.equal((await served(bind)).isUnnamed, true)
  assert.equal((await served(bind, { held: { wildcard, reservationId: 'rd_2' } })).isUnnamed, false)
  for (const rule of ['bind:a.test', 'bind:*.test']) {
    const credential = { id: 'cr_1', acl: ['*', rule] }
    assert.equal((await served(bind, { held: { wildcard }, credential })).isUnnamed, false)
  }
})

describe('an address', () => {
  test('goes to one of two agents that ask for it at the same time', async () => {
    const { ask } = start()
    const [first, second] = await Promise.allSettled([ask(bind), ask(byAnother(2))])
    assert.equal(first.status, 'fulfilled')
    assert.equal(second.status, 'rejected')
    assert.match(String(second.reason), /a\.test:443 is already online; stop the other tunnel/)
  })

  test('that is asked for again, since the answer was lost, is granted again', async () => {
    const { ask, directory } = start()
    const granted = await ask(bind)
    assert.deepEqual(await ask(bind), granted)
    assert.deepEqual(directory.holdersOf(bind.place), ['ts_1'])
    await refused(ask(byAnother(2)))
  })

  test('is free when its bind was withdrawn before it was decided', async () => {
    const holders = Promise.withResolvers<AddressHolders>()
    const { ask, binds, directory } = start({ rules: { holders: () => holders.promise } })
    const asking = refused(ask(bind))
    binds.withdraw('w1', { place: bind.place, tunnelId: 'tn_1' })
    holders.resolve({ edgeId: undefined, reservationId: undefined })
    await asking
    assert.deepEqual(directory.heldAddresses(bind.place), [])
    await ask(bind)
    assert.equal(directory.heldAddresses(bind.place).length, 1)
  })

  test('is free when its bind was withdrawn after it was granted', async () => {
    const { ask, binds, directory } = start()
    await ask(bind)
    binds.withdraw('w2', { place: bind.place, tunnelId: 'tn_1' })
    assert.equal(directory.heldAddresses(bind.place).length, 1)
    binds.withdraw('w1', { place: bind.place, tunnelId: 'tn_1' })
    assert.deepEqual(directory.heldAddresses(bind.place), [])
  })

  for (const isWithdrawn of [false, true]) {
    test(`that turns out to be free elsewhere ${isWithdrawn ? 'stays free when its bind was withdrawn meanwhile' : 'is granted'}`, async () => {
      const reservation = { ...testReservation('tn_9', 'ts_9', 'a.test'), place: bind.place }
      const isFreedInCluster = async (wanted: Reservation) => {
        assert.deepEqual(started.directory.heldAddresses(wanted.place), [{ ...reservation, planeId: 'w2' }])
        started.directory.release('w2', reservation)
        if (isWithdrawn) started.binds.withdraw('w1', { place: bind.place, tunnelId: 'tn_1' })
        return true
      }
      const started = start({ rules: { isFreedInCluster } })
      await started.directory.reserve('w2', reservation)
      if (isWithdrawn) await refused(started.ask(bind))
      else await started.ask(bind)
      assert.deepEqual(
        started.directory.heldAddresses(bind.place).map(({ tunnelId }) => tunnelId),
        isWithdrawn ? [] : ['tn_1'],
      )
    })
  }

  test('is not granted to a data plane that has gone meanwhile', async () => {
    let isGone = false
    const holders = async () => {
      isGone = true
      return { edgeId: undefined, reservationId: undefined }
    }
    const { binds, directory } = start({ rules: { holders } })
    const planeId = () => (isGone ? assert.fail('the data plane is gone') : 'w1')
    await assert.rejects(binds.grant(planeId, bind), /the data plane is gone/)
    assert.deepEqual(directory.heldAddresses(bind.place), [])
  })

  test('that the data plane serves for another is taken, although the directory does not know it yet', async () => {
    const other = { edgeId: 'ep_9', isRemote: false }
    await refused(start().ask({ ...bind, served: other }))
    await start().ask({ ...bind, served: { ...other, isRemote: true } })
    await start().ask({ ...bind, served: { ...other, edgeId: bind.id } })
  })

  test('moves with its session from a data plane that drains', async () => {
    const { ask, directory } = start()
    directory.sessionStarted('w1', onlineSession('ts_1'))
    await ask(bind)
    await directory.tunnelStarted('w1', endpointTunnel('tn_1', 'ts_1', 'a.test'))
    directory.leaving('w1')
    await ask({ ...bind, served: { edgeId: bind.id, isRemote: false } }, 'w2')
    assert.equal(directory.heldAddresses(bind.place)[0]?.planeId, 'w1')
  })
})

describe('a pool', () => {
  const pooled = { ...bind, isPooled: true }

  test('is joined by tunnels with the same guards, and others are told how they differ', async () => {
    const { ask } = start()
    const first = await ask(pooled)
    const second = await ask(byAnother(2, pooled))
    assert.deepEqual(second.config, first.config)
    const differs = byAnother(3, { ...pooled, tunnel: { ...bind.tunnel, proxyHeader: 1 } })
    assert.match((await refused(ask(differs))).message, /the protocol, or the PROXY header, of this tunnel/)
    assert.match((await refused(ask(byAnother(4)))).message, /^a\.test:443 is already online; stop the other tunnel/)
  })

  test('is not joined at an address that the server chose', async () => {
    const { config } = await served(pooled)
    const there = { edgeId: config.id, isRemote: false }
    assert.equal((await start().ask({ ...pooled, served: there })).config.id, config.id)
    assert.equal((await refused(start().ask({ ...pooled, isRandom: true, served: there }))).ngrok, 334)
  })
})

describe('the version of what an agent serves', () => {
  test('is the same when it comes back for the same, at any node', async () => {
    const { version } = await served(bind)
    assert.equal((await served({ ...bind, sessionId: 'ts_2' })).version, version)
    assert.equal((await served(bind, { guard: 'ada' })).version, (await served(bind, { guard: 'ada' })).version)
  })

  test('is another when anything is served differently', async () => {
    const { version } = await served(bind)
    const others = [
      await served(bind, { guard: 'ada' }),
      await served({ ...bind, tunnel: { ...bind.tunnel, tunnelId: 'tn_2' } }),
      await served({ ...bind, tunnel: { ...bind.tunnel, proxyHeader: 1 } }),
      await served({ ...bind, credentialId: 'cr_2' }),
      await served({ ...bind, isPooled: true }),
      // It is stored, and must not let anyone verify a guess at a guard.
      await served(bind, { key: 'another' }),
    ]
    assert.equal(new Set([version, ...others.map((each) => each.version)]).size, others.length + 1)
  })
})
