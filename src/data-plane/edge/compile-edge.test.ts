import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DialFault } from '../../model/dial.ts'
import type { BackendPlan, EdgeConfig, ModuleSettings } from '../../model/edge-config.ts'
import { testTools } from '../../modules/testing/test-tools.ts'
import { type CompiledEdge, compileEdge, releaseReplaced } from './compile-edge.ts'

let released = 0
const reach = {
  dial: async () => new DialFault('offline', 'nobody'),
  followGroup: () => ({ members: [], release: () => void released++ }),
  random: () => 0,
}
const tools = testTools()

const group: BackendPlan = { kind: 'tunnel_group', id: 'bkdtg_1', labels: { app: 'a' } }

function https(route: ModuleSettings, own: ModuleSettings = {}): EdgeConfig {
  const routes = [{ id: 'edghtsrt_1', matchType: 'path_prefix', match: '/', modules: route } as const]
  return { id: 'edghts_1', kind: 'https', names: ['a.example.com'], ports: [], modules: own, routes }
}

function compile(config: EdgeConfig, previous?: CompiledEdge): CompiledEdge {
  const steps = compileEdge(config, { reach, tools, previous })
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

const agents = { allow: [], deny: ['curl'] }

describe('a module that cannot be applied', () => {
  const cases: Record<string, ModuleSettings> = {
    'is unknown here': { no_such_module: {} },
    'does not compile': { user_agent_filter: { allow: ['('], deny: [] } },
  }
  for (const [why, settings] of Object.entries(cases)) {
    test(`because it ${why} breaks its route and no other`, () => {
      const config = https({ ...settings, backend: group })
      const fine = { ...config.routes[0], id: 'edghtsrt_2', match: '/fine', modules: { backend: group } }
      const edge = compile({ ...config, routes: [...config.routes, fine as (typeof config.routes)[0]] })
      assert.match(String(edge.route('/')?.broken), /^module /)
      assert.equal(edge.route('/fine')?.broken, undefined)
      assert.equal(edge.broken, undefined)
    })
  }

  test('breaks the whole edge when it is on the edge', () => {
    assert.match(String(compile(https({}, { no_such_module: {} })).broken), /no_such_module/)
  })

  test('is also reported when its settings could not be read beforehand', () => {
    assert.equal(compile({ ...https({}), broken: 'sealed under another key' }).broken, 'sealed under another key')
  })
})

describe('where TLS ends', () => {
  const config = (kind: EdgeConfig['kind'], modules: ModuleSettings = {}): EdgeConfig => ({
    ...https({}),
    kind,
    modules,
  })

  test('on HTTPS edges always here', () => assert.deepEqual(compile(config('https')).tls, {}))
  test('on TLS edges at the service, unless a module asks for it', () => assert.equal(compile(config('tls')).tls, null))
  test('on others nowhere', () => assert.equal(compile(config('tcp')).tls, null))

  test('other demands give another key, equal ones the same', () => {
    const strict = { tls_termination: { terminate: 'edge', minVersion: '1.3' } }
    const [a, b] = [compile(config('https')), compile(config('https', strict))]
    assert.notEqual(a.tlsKey, b.tlsKey)
    assert.equal(b.tlsKey, compile({ ...config('https', strict), id: 'edghts_2' }).tlsKey)
  })

  test('with client certificates no two edges share a key', () => {
    const mutual = { mutual_tls: { authorities: ['pem'] } }
    const a = compile(config('https', mutual))
    assert.notEqual(a.tlsKey, compile({ ...config('https', mutual), id: 'edghts_2' }).tlsKey)
  })
})

describe('a change', () => {
  test('keeps what did not change, with its state', () => {
    const before = compile(https({ user_agent_filter: agents, backend: group }))
    const after = compile(https({ user_agent_filter: agents, backend: group, compression: {} }), before)
    assert.equal(after.route('/')?.request[0], before.route('/')?.request[0])
    assert.equal(after.route('/')?.backend, before.route('/')?.backend)
    released = 0
    releaseReplaced(before, after)
    assert.equal(released, 0)
  })

  test('releases what it replaced', () => {
    const before = compile(https({ backend: group }))
    const after = compile(https({ backend: { ...group, labels: { app: 'b' } } }), before)
    assert.notEqual(after.route('/')?.backend, before.route('/')?.backend)
    released = 0
    releaseReplaced(before, after)
    assert.equal(released, 1)
    after.release()
    assert.equal(released, 2)
  })
})

test('an error of a connection phase names the module', () => {
  const { accept } = compile({ ...https({}, { ip_restriction: { allow: [], deny: [] } }), kind: 'tcp' })
  assert.throws(() => accept[0]?.(undefined as never, undefined as never), { message: 'module ip_restriction' })
})
