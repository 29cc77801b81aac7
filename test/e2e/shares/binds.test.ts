/** Binds: thousands of one credential, and those of another. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextRound } from 'node:timers/promises'
import {
  BindRefusal,
  type EndpointRequest,
  type Endpoints,
  type OpenEndpoint,
} from '../../../src/data-plane/tunnel/interfaces.ts'
import { Online } from '../../../src/data-plane/tunnel/online-tunnels.ts'
import { Registry } from '../../../src/data-plane/tunnel/registry.ts'
import type { LiveSession } from '../../../src/data-plane/tunnel/session-types.ts'
import { bindRequest } from '../../../src/data-plane/tunnel/testing/raw-agent.ts'
import { testControl } from '../../../src/data-plane/tunnel/testing/test-control.ts'
import { TunnelTable } from '../../../src/data-plane/tunnel/tunnel-table.ts'
import { IdSource } from '../../../src/lib/ids.ts'
import { createLog } from '../../../src/lib/log/create-log.ts'
import { Sealer } from '../../../src/lib/secrets/seal.ts'
import { shared } from '../../../src/model/shared.ts'
import { HeldWork } from './held-work.ts'

const { most } = shared.binds

/** Somebody else has it, and does not answer. */
const HELD = 'held.example.test'

/** A data plane whose endpoints open, and whose holders prove that they live, when the test lets them. */
class Plane {
  readonly work = new HeldWork()
  readonly proofs = new HeldWork()
  readonly online: Online

  constructor({ isClustered = false } = {}) {
    const control = testControl({
      proveAlive: async ({ place }) => {
        await this.proofs.begin(place)
        return false
      },
    })
    const endpoints: Endpoints = {
      open: async (request) => {
        await this.work.begin(request.credentialId)
        return request.host === HELD ? new BindRefusal(334, 'taken', { isTaken: true }) : opened(request)
      },
    }
    this.online = new Online({
      ...{ control, endpoints, isClustered },
      registry: new Registry({ region: 'local', control }),
      seal: new Sealer(randomBytes(32)),
      ids: new IdSource({ now: Date.now }),
      now: Date.now,
      log: createLog({ level: 'silent' }),
      random: randomBytes,
      domain: 'example.test',
      tcpPorts: { from: 20_000, to: 20_009 },
      publicPorts: () => ({ http: 80, https: 443 }),
    })
  }

  /** As many sessions of a credential, each with one bind; resolves with how many were refused. */
  async bind(credentialId: string, count: number, nameOf = (i: number) => `${credentialId}${i}.test`): Promise<number> {
    const binds = Array.from({ length: count }, (_, i) =>
      this.online.bind(sessionOf(credentialId), { ...bindRequest, opts: { Domain: nameOf(i) } }),
    )
    const outcomes = await Promise.all(binds)
    return outcomes.filter((outcome) => outcome instanceof BindRefusal).length
  }

  async letGo(count = this.work.underWay): Promise<void> {
    await this.work.letGo(count)
    await settled()
  }

  /** Lets all go that begin. */
  async letAllGo(): Promise<void> {
    while (this.work.underWay > 0) await this.letGo()
  }
}

/** Opening a seal and becoming online take a few rounds of the loop. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await nextRound()
}

function sessionOf(credentialId: string): LiveSession {
  const session = { id: 'ts_1', credentialId, tunnels: new TunnelTable(), isEnded: false, present: {} }
  return session as unknown as LiveSession // Nothing else of it is used.
}

function opened({ id, proto, host }: EndpointRequest): OpenEndpoint {
  const config = { id, kind: proto, names: [], ports: [], modules: {}, routes: [] }
  const served = { config, version: '1', isUnnamed: false }
  return { url: `https://${host}`, hostport: `${host}:443`, served, handOver() {}, close() {} }
}

test('all binds of one credential are under way together, up to the bound; in a cluster, up to four times as many', async () => {
  for (const isClustered of [false, true]) {
    const plane = new Plane({ isClustered })
    const bound = isClustered ? 4 * most : most
    const binds = plane.bind('a', 2 * bound)
    await settled()
    assert.equal(plane.work.underWay, bound)
    await plane.letGo()
    assert.equal(plane.work.underWay, bound)
    await plane.letAllGo()
    assert.equal(await binds, 0)
  }
})

test('two binds of another credential never wait for those of one that has all there is, and its further ones come next', async () => {
  const plane = new Plane()
  const attack = plane.bind('a', 20 * most)
  await settled()
  assert.equal(plane.work.underWay, most)
  const others = plane.bind('b', 10)
  await settled()
  assert.deepEqual(plane.work.begun.slice(most), ['b', 'b'])
  // The first two that end only make up for those that did not wait.
  await plane.letGo(2 + 8)
  assert.deepEqual(plane.work.begun.slice(most + 2), Array<string>(8).fill('b'))
  await plane.letAllGo()
  assert.deepEqual(await Promise.all([others, attack]), [0, 0])
})

test('a bind that waits for a sign of life of the present holder holds no turn', async () => {
  const plane = new Plane()
  const waiting = plane.bind('a', most, () => HELD)
  await settled()
  await plane.letGo()
  assert.deepEqual([plane.work.underWay, plane.proofs.underWay], [0, most])
  const free = plane.bind('a', most)
  await settled()
  assert.equal(plane.work.underWay, most)
  await plane.letGo()
  assert.equal(await free, 0)
  await plane.proofs.letGo()
  assert.equal(await waiting, most)
})
