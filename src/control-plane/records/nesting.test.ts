import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { Refusal } from '../../model/errors.ts'
import { childMentions } from '../resources/backend-lists.ts'
import { resourceOf } from '../resources/index.ts'
import { openStore, type Store } from '../store/store.ts'
import { checkNesting } from './nesting.ts'
import {
  backend,
  edge,
  failover,
  group,
  response,
  route,
  sealedBy,
  storeRows,
  type TestRow,
} from './testing/test-rows.ts'

/** `chain0` contains a group, and each of the others contains the one before it. */
const chain = Array.from({ length: 8 }, (_, i) =>
  failover(`bkdfo_chain${i}`, i === 0 ? 'bkdtg_a' : `bkdfo_chain${i - 1}`),
)
const stored: readonly TestRow[] = [
  group('bkdtg_a'),
  response('bkdhr_a'),
  ...chain,
  failover('bkdfo_groups', 'bkdtg_a'),
  failover('bkdfo_sorry', 'bkdtg_a', 'bkdhr_a'),
  failover('bkdfo_carrying', 'bkdtg_a'),
  failover('bkdfo_above', 'bkdfo_carrying'),
  edge('edgtcp_1', 'tcp_edge', ['h:20001'], { backend: backend('bkdfo_above') }),
  edge('edghts_1', 'https_edge', ['x.example.com:443']),
  failover('bkdfo_ofroute', 'bkdtg_a'),
  route('edghtsrt_1', 'edghts_1', '/', { backend: backend('bkdfo_ofroute') }),
]

/** The backend that is to name others, and the outcome. `id` is null for a new one. */
const cases: {
  name: string
  kind?: string
  id?: string
  names: readonly string[]
  refused?: readonly [code: string, message: RegExp]
}[] = [
  { name: 'a new backend with plain children', names: ['bkdtg_a', 'bkdhr_a'] },
  { name: 'seven levels below a new one', names: ['bkdfo_chain6'] },
  { name: 'eight levels below a new one', names: ['bkdfo_chain7'], refused: ['BACKENDS_TOO_DEEP', /at most 8 deep/] },
  { name: 'two levels below one that has five above it', id: 'bkdfo_chain2', names: ['bkdfo_above'] },
  {
    name: 'two levels below one that has six above it',
    id: 'bkdfo_chain1',
    names: ['bkdfo_above'],
    refused: ['BACKENDS_TOO_DEEP', /weighted backends and failover backends can stand at most 8 deep/],
  },
  {
    name: 'a backend that names itself',
    id: 'bkdfo_groups',
    names: ['bkdfo_groups'],
    refused: ['BACKEND_IN_ITSELF', /cannot contain `bkdfo_groups`, itself; it names itself/],
  },
  {
    name: 'a circle of two',
    id: 'bkdfo_carrying',
    names: ['bkdfo_above'],
    refused: ['BACKEND_IN_ITSELF', /one of those it names contains it/],
  },
  {
    name: 'an HTTP response behind a TCP edge',
    kind: 'tcp_edge',
    id: 'edgtcp_1',
    names: ['bkdfo_sorry'],
    refused: ['BACKEND_NEEDS_HTTP', /this TCP edge carries bytes, but the HTTP response backend `bkdhr_a`/],
  },
  {
    name: 'an HTTP response in a backend that a TCP edge uses through another one',
    id: 'bkdfo_carrying',
    names: ['bkdtg_a', 'bkdhr_a'],
    refused: ['BACKEND_NEEDS_HTTP', /the edge `edgtcp_1`, which uses this failover backend, carries bytes/],
  },
  { name: 'an HTTP response in a backend of a route', id: 'bkdfo_ofroute', names: ['bkdhr_a'] },
  { name: 'an HTTP response behind a route', kind: 'https_edge_route', id: 'edghtsrt_1', names: ['bkdhr_a'] },
  { name: 'a group behind a TLS edge that is new', kind: 'tls_edge', names: ['bkdfo_groups'] },
]

describe('backends inside backends', () => {
  eachStore((databases) => {
    let store: Store
    before(async () => {
      store = await sealedBy(await openStore(await databases.url()))
      await storeRows(store, stored)
    })
    after(() => store.close())

    const check = (kind: string, id: string | null, names: readonly string[]) =>
      store.write((writer) => checkNesting(writer, resourceOf(kind), id, childMentions(names)))

    for (const { name, kind = 'failover_backend', id = null, names, refused } of cases) {
      test(`${name}: ${refused ? refused[0] : 'fine'}`, async () => {
        if (!refused) return check(kind, id, names)
        const [code, message] = refused
        await assert.rejects(check(kind, id, names), (error) => {
          assert.ok(error instanceof Refusal, String(error))
          assert.equal(error.code, code)
          assert.match(error.message, message)
          return true
        })
      })
    }

    test('more than a thousand backends below one are refused', async () => {
      const many = Array.from({ length: 1001 }, (_, i) => group(`bkdtg_many${i}`))
      await storeRows(store, many)
      await assert.rejects(
        check(
          'failover_backend',
          null,
          many.map(({ id }) => id),
        ),
        /at most 1000 backends may stand below one/,
      )
    })
  })
})
