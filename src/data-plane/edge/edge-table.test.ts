import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createLog } from '../../lib/log/create-log.ts'
import { compileProgram, type PatternProgram } from '../../lib/patterns/pattern-program.ts'
import { DialFault } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { prepareExpression } from '../../modules/policy/engine/parsed.ts'
import { testTools } from '../../modules/testing/test-tools.ts'
import { EdgeTable } from './edge-table.ts'

/** Stands for the other thread: compiles patterns when the test says so. */
class RemoteAddresses {
  readonly lists: (readonly string[])[] = []
  readonly #waiting: {
    list: readonly string[]
    resolve: (program: PatternProgram) => void
    reject: (e: Error) => void
  }[] = []

  compile = (list: readonly string[]): Promise<PatternProgram> => {
    this.lists.push(list)
    return new Promise((resolve, reject) => this.#waiting.push({ list, resolve, reject }))
  }

  /** Compiles the oldest list that waits, or fails to. */
  async finish({ fault }: { fault?: Error } = {}): Promise<void> {
    const first = this.#waiting.shift()
    assert.ok(first, 'nothing is compiled elsewhere')
    if (fault) first.reject(fault)
    else first.resolve(compileProgram(first.list))
    for (let i = 0; i < 5; i++) await setImmediate()
  }
}

function start({ portFault }: { portFault?: Error } = {}) {
  const remote = new RemoteAddresses()
  let released = 0
  const opened: number[] = []
  const edges = new EdgeTable({
    reach: {
      dial: async () => new DialFault('offline', 'nobody'),
      followGroup: () => ({ members: [], release: () => void released++ }),
      random: () => 0,
    },
    tools: testTools(),
    compilePatterns: remote.compile,
    prepareExpressions: async (texts) => texts.map(prepareExpression),
    ports: {
      open: async (port) => {
        opened.push(port)
        return portFault
      },
      close() {},
    },
    log: createLog({ level: 'silent' }),
  })
  return { edges, remote, released: () => released, opened }
}

const costly = (what: string): readonly string[] => [what, ...Array.from({ length: 10 }, () => '\\pL{20}x')]
const backend = (label: string) => ({ kind: 'tunnel_group', id: `bkdtg_${label}`, labels: { app: label } }) as const

function https(id: string, deny: readonly string[], { names = [`${id}.example.com`], label = 'a' } = {}): EdgeConfig {
  const modules = { user_agent_filter: { allow: [], deny }, backend: backend(label) }
  const routes = [{ id: `${id}_route`, matchType: 'path_prefix', match: '/', modules } as const]
  return { id, kind: 'https', names, ports: [], modules: {}, routes }
}

/** Waits until all is done that does not need the other thread. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate()
}

describe('an edge that is expensive to compile', () => {
  test('lets no visitor in until it is compiled, and does not hold up other edges', async () => {
    const { edges, remote } = start()
    await edges.apply(https('dear', costly('a')))
    await edges.apply(https('cheap', ['curl']))
    const starting = edges.find('dear.example.com')
    assert.ok(starting?.starting && starting.broken !== undefined && starting.route('/') === undefined)
    assert.equal(edges.find('cheap.example.com')?.broken, undefined)
    await settle()
    await remote.finish()
    await starting.starting
    const edge = edges.find('dear.example.com')
    assert.equal(edge?.broken, undefined)
    assert.equal(edge?.starting, undefined)
    assert.equal(edge?.route('/')?.request.length, 1)
    assert.deepEqual(remote.lists, [costly('a')])
  })

  test('is compiled once, for the first visitor after a start', async () => {
    const { edges, remote } = start()
    await edges.apply(https('dear', costly('a')), { isIdle: true })
    await settle()
    assert.deepEqual(remote.lists, [])
    const first = edges.find('dear.example.com')
    assert.equal(edges.find('dear.example.com'), first)
    await settle()
    assert.equal(remote.lists.length, 1)
    await remote.finish()
    await first?.starting
    assert.equal(edges.find('dear.example.com')?.broken, undefined)
    assert.equal(remote.lists.length, 1)
  })

  test('is served in its old version until the new one is compiled, and names change with it', async () => {
    const { edges, remote } = start()
    await edges.apply(https('e', ['curl'], { names: ['old.example.com'] }))
    const before = edges.find('old.example.com')
    await edges.apply(https('e', costly('b'), { names: ['new.example.com'] }))
    await settle()
    assert.equal(edges.find('old.example.com'), before)
    assert.equal(edges.find('new.example.com'), undefined)
    await remote.finish()
    assert.equal(edges.find('old.example.com'), undefined)
    assert.notEqual(edges.find('new.example.com'), before)
    assert.equal(edges.find('new.example.com')?.broken, undefined)
  })

  test('does not come back when a later version has overtaken it', async () => {
    const { edges, remote, released } = start()
    await edges.apply(https('e', ['curl'], { label: 'first' }))
    await edges.apply(https('e', costly('b'), { label: 'overtaken' }))
    await settle()
    await edges.apply(https('e', ['wget'], { label: 'last' }))
    const last = edges.find('e.example.com')
    assert.equal(released(), 1, 'the backend of the first version')
    await remote.finish()
    assert.equal(edges.find('e.example.com'), last)
    assert.equal(released(), 2, 'and that of the one that was overtaken')
  })

  test('does not come back when it was removed meanwhile', async () => {
    const { edges, remote, released } = start()
    await edges.apply(https('never-served', costly('a'), { label: 'a' }))
    await edges.apply(https('served', ['curl'], { label: 'b' }))
    await edges.apply(https('served', costly('b'), { label: 'c' }))
    await settle()
    edges.remove('never-served')
    edges.remove('served')
    await remote.finish()
    await remote.finish()
    assert.equal(edges.find('never-served.example.com'), undefined)
    assert.equal(edges.find('served.example.com'), undefined)
    assert.equal(released(), 3)
  })

  test('refuses traffic on the routes whose patterns cannot be compiled', async () => {
    const { edges, remote } = start()
    const config = https('e', costly('a'))
    const fine = { id: 'fine', matchType: 'path_prefix', match: '/fine', modules: { backend: backend('x') } } as const
    await edges.apply({ ...config, routes: [...config.routes, fine] })
    await settle()
    await remote.finish({ fault: new Error('it took too long') })
    await settle()
    const edge = edges.find('e.example.com')
    assert.match(String(edge?.route('/')?.broken), /it took too long/)
    assert.equal(edge?.route('/fine')?.broken, undefined)
    const [first, ...others] = edges.broken
    assert.deepEqual([first?.edgeId, first?.routeId, others], ['e', config.routes[0]?.id, []])
    assert.match(first?.reason ?? '', /it took too long/)
    edges.remove('e')
    assert.deepEqual(edges.broken, [])
  })

  test('is reported when it is broken, even before it is compiled, and when its port cannot be opened', async () => {
    const { edges } = start({ portFault: new Error('port 7000 cannot be opened') })
    const tcp = { kind: 'tcp', names: [], ports: [7000], modules: {}, routes: [] } as const
    await edges.apply({ ...tcp, id: 'edgtcp_1' })
    await edges.apply({ ...tcp, id: 'ep_1' })
    await edges.apply({ ...tcp, id: 'edgtcp_2', ports: [], broken: 'sealed under another key' }, { isIdle: true })
    assert.deepEqual(edges.broken, [
      { edgeId: 'edgtcp_1', reason: 'port 7000 cannot be opened' },
      { edgeId: 'edgtcp_2', reason: 'sealed under another key' },
    ])
    await edges.apply({ ...tcp, id: 'edgtcp_1', ports: [] })
    assert.deepEqual(edges.broken.length, 1)
    for (let i = 0; i < 200; i++) await edges.apply({ ...tcp, id: `edgtcp_b${i}`, ports: [], broken: 'no' })
    assert.equal(edges.broken.length, 100, 'a bounded number')
  })

  test('keeps what did not change, and does not compile it again', async () => {
    const { edges, remote } = start()
    await edges.apply(https('e', costly('a')))
    await settle()
    await remote.finish()
    const before = edges.find('e.example.com')?.route('/')?.request[0]
    await edges.apply(https('e', costly('a'), { label: 'another' }))
    await settle()
    assert.equal(remote.lists.length, 1)
    assert.equal(edges.find('e.example.com')?.route('/')?.request[0], before)
  })

  test('has its port opened anyway', async () => {
    const { edges, opened } = start()
    const modules = { user_agent_filter: { allow: [], deny: costly('a') } }
    await edges.apply({ id: 'edgtcp_1', kind: 'tcp', names: [], ports: [7000], modules, routes: [] })
    assert.deepEqual(opened, [7000])
    assert.ok(edges.onPort(7000)?.starting)
  })
})

test('an edge of very many routes is compiled in many turns', async () => {
  const { edges } = start()
  const routes = Array.from({ length: 3000 }, (_, i) => ({
    id: `route_${i}`,
    matchType: 'exact_path' as const,
    match: `/${i}`,
    modules: { backend: backend('a') },
  }))
  await edges.apply({ ...https('e', []), routes })
  const { starting } = edges.find('e.example.com') ?? {}
  assert.ok(starting, 'it was compiled at once')
  await starting
  assert.equal(edges.find('e.example.com')?.route('/2999')?.id, 'route_2999')
})
