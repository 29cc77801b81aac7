import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { nobodyPresent } from '../records/online-lists.ts'
import {
  backend,
  edge,
  failover,
  group,
  policy,
  route,
  sealedBy,
  storeRows,
  type TestRow,
  testSealer,
} from '../records/testing/test-rows.ts'
import type { Followed } from '../store/feed-follower.ts'
import { openStore, type Store } from '../store/store.ts'
import { edgeEndpoints } from './edge-endpoints.ts'
import { type EdgeSink, mirrorEdges } from './edge-mirror.ts'

/** Serves nothing, and records its calls in order. */
class NotingSink {
  readonly notes: string[] = []
  readonly served = new Map<string, EdgeConfig>()

  async storedIds(): Promise<readonly string[]> {
    return [...this.served.keys()]
  }

  /** Ids of edges that take long to compile. */
  readonly slow = new Set<string>()
  readonly compiled = Promise.withResolvers<void>()

  settled(): Promise<void> {
    return this.compiled.promise
  }

  async change({ applied, removed, isIdle }: Parameters<EdgeSink['change']>[0]): Promise<readonly string[]> {
    for (const id of removed) {
      this.served.delete(id)
      this.notes.push(`remove ${id}`)
    }
    for (const config of applied) {
      this.served.set(config.id, config)
      this.notes.push(`${isIdle ? 'load' : 'apply'} ${config.id}`)
    }
    return applied.flatMap(({ id }) => (this.slow.has(id) ? [id] : []))
  }

  /** The calls since the last check. */
  taken(): string[] {
    return this.notes.splice(0)
  }
}

describe('live edges', () => {
  eachStore((databases) => {
    const opened: Store[] = []
    const lines: string[] = []
    const log = createLog({ level: 'warn', format: 'json', destination: { write: (line) => lines.push(line) } })
    let store: Store
    let sink: NotingSink
    let endpoints: ReturnType<typeof edgeEndpoints>
    let live: Followed

    beforeEach(async () => {
      lines.length = 0
      store = await sealedBy(await openStore(await databases.url()))
      opened.push(store)
      sink = new NotingSink()
      endpoints = edgeEndpoints({ store, region: 'local', log })
      live = mirrorEdges({ store, sealer: testSealer, sink, log })
    })
    after(() => Promise.all(opened.map((each) => each.close())))

    const start = async (...rows: readonly TestRow[]): Promise<void> => {
      await storeRows(store, rows)
      await live.load()
      await endpoints.load()
      sink.taken()
    }
    const changed = async (...changes: readonly [kind: string, id: string][]): Promise<string[]> => {
      const all = changes.map(([kind, id], revision) => ({ kind, id, revision }))
      await live.apply(all)
      await endpoints.apply(all)
      return sink.taken().sort()
    }
    const listed = async () =>
      (await endpoints.beside(nobodyPresent).endpoints({ limit: 100 })).map(({ edgeId = '' }) => edgeId).sort()

    test('all stored edges are loaded, and compiled only for their first visitor', async () => {
      const ids = Array.from({ length: 205 }, (_, i) => `edgtls_${String(i).padStart(3, '0')}`)
      await storeRows(store, [
        ...ids.map((id) => edge(id, 'tls_edge', [`${id.slice('edgtls_'.length)}.example.com:443`])),
        edge('edgtcp_1', 'tcp_edge', ['h:20001']),
        edge('edghts_1', 'https_edge', ['www.example.com:443']),
      ])
      await live.load()
      await endpoints.load()
      assert.deepEqual(sink.taken().sort(), ['edghts_1', 'edgtcp_1', ...ids].map((id) => `load ${id}`).sort())
    })

    test('loading again removes edges that were deleted meanwhile', async () => {
      await start(edge('edgtcp_1', 'tcp_edge', ['h:20001']), edge('edgtcp_2', 'tcp_edge', ['h:20002']))
      await store.write((writer) => writer.remove('edgtcp_1'))
      await live.load()
      await endpoints.load()
      assert.deepEqual(sink.taken(), ['load edgtcp_2', 'remove edgtcp_1'])
      assert.deepEqual(await listed(), ['edgtcp_2'])
    })

    test('a changed edge is applied once', async () => {
      await start(edge('edgtcp_1', 'tcp_edge', ['h:20001']), edge('edgtcp_2', 'tcp_edge', ['h:20002']))
      assert.deepEqual(await changed(['tcp_edge', 'edgtcp_1'], ['tcp_edge', 'edgtcp_1']), ['apply edgtcp_1'])
    })

    test('a change of a resource applies the edges that refer to it, and no others', async () => {
      await start(
        ...policy('ipp_1', ['10.0.0.0/8', 'allow']),
        group('bkdtg_1'),
        edge('edgtcp_policy', 'tcp_edge', [], { ip_restriction: { enabled: true, ip_policy_ids: ['ipp_1'] } }),
        edge('edgtcp_group', 'tcp_edge', [], { backend: backend('bkdtg_1') }),
        edge('edghts_1', 'https_edge', []),
        route('edghtsrt_1', 'edghts_1', '/', { ip_restriction: { enabled: true, ip_policy_ids: ['ipp_1'] } }),
        edge('edgtcp_other', 'tcp_edge', []),
      )
      assert.deepEqual(await changed(['ip_policy', 'ipp_1']), ['apply edghts_1', 'apply edgtcp_policy'])
      assert.deepEqual(await changed(['tunnel_group_backend', 'bkdtg_1']), ['apply edgtcp_group'])
      const reported = sink.served.get('edgtcp_policy')?.modules.ip_restriction
      assert.deepEqual(reported, { allow: ['10.0.0.0/8'], deny: [] })
    })

    test('a change deep inside nested backends applies the edge', async () => {
      await start(
        group('bkdtg_1'),
        failover('bkdfo_1', 'bkdtg_1'),
        failover('bkdfo_2', 'bkdfo_1'),
        edge('edghts_1', 'https_edge', []),
        route('edghtsrt_1', 'edghts_1', '/', { backend: backend('bkdfo_2') }),
        route('edghtsrt_2', 'edghts_1', '/too', { backend: backend('bkdfo_1') }),
      )
      assert.deepEqual(await changed(['tunnel_group_backend', 'bkdtg_1']), ['apply edghts_1'])
    })

    test('unrelated changes apply no edge', async () => {
      await start(edge('edgtcp_1', 'tcp_edge', []))
      assert.deepEqual(await changed(['api_key', 'ak_1'], ['tunnel_group_backend', 'bkdtg_nobody']), [])
    })

    test('deleted edges are removed before new ones are applied, so that a name can move', async () => {
      await start(edge('edgtls_old', 'tls_edge', ['x.example.com:443']))
      await store.write((writer) => writer.remove('edgtls_old'))
      await storeRows(store, [edge('edgtls_new', 'tls_edge', ['x.example.com:443'])])
      const changes = [
        { kind: 'tls_edge', id: 'edgtls_new', revision: 1 },
        { kind: 'tls_edge', id: 'edgtls_old', revision: 2 },
      ]
      await live.apply(changes)
      await endpoints.apply(changes)
      assert.deepEqual(sink.taken(), ['remove edgtls_old', 'apply edgtls_new'])
      assert.deepEqual(await listed(), ['edgtls_new'])
    })

    test('a large batch of changes applies every edge', async () => {
      const ids = Array.from({ length: 150 }, (_, i) => `edgtcp_${i}`)
      await start(...ids.map((id) => edge(id, 'tcp_edge', [])))
      const notes = await changed(...ids.map((id): [string, string] => ['tcp_edge', id]))
      assert.deepEqual(notes, ids.map((id) => `apply ${id}`).sort())
    })

    test('an unreadable edge does not affect others, and the log names it', async () => {
      await storeRows(store, [
        edge('edgtls_bad', 'tls_edge', ['no port']),
        edge('edgtls_good', 'tls_edge', ['good.example.com:443']),
      ])
      await live.load()
      await endpoints.load()
      assert.deepEqual(await listed(), ['edgtls_good'])
      assert.equal(typeof sink.served.get('edgtls_bad')?.broken, 'string')
      assert.deepEqual(sink.served.get('edgtls_good')?.names, ['good.example.com'])
      assert.equal(lines.filter((line) => line.includes('edgtls_bad')).length, 1)
    })
  })
})
