/** What a data plane knows of other nodes while agents move between them. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import type { RemoteAddress } from '../../link/planes/plane-calls.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { NodeTunnels } from './node-tunnels.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`
const config: EdgeConfig = { id: 'ep_1', kind: 'https', names: [NAME], ports: [], modules: {}, routes: [] }
const request: DialRequest = {
  tunnelId: 'tn_1',
  ...{ ip: '192.0.2.1', port: 4711, proto: 'https', edge: 'none', passthroughTls: false },
}

function placeAt(nodeId: string, more: Partial<RemoteAddress> = {}): RemoteAddress {
  const tunnel = { tunnelId: 'tn_1', sessionId: 'ts_1', nodeId, planeId: 'w1', httpVersion: 1 as const }
  return { place: PLACE, config, version: `v_${nodeId}`, tunnel, ...more }
}

const nodeAt = (nodeId: string, isLeaving: boolean) => ({
  ...{ nodeId, name: nodeId, address: { host: '192.0.2.1', port: 7444 }, agentAddresses: [], isLeaving },
})

describe('tunnels at other nodes', () => {
  const closers: (() => void)[] = []
  afterEach(() => {
    for (const close of closers.splice(0)) close()
  })

  /** `found` is what the directory answers; `answers` what each node answers to a dial, the first of its list at a time. */
  function plane({ answers }: { readonly answers: Record<string, string[]> }) {
    const state = { found: [placeAt('nd_a')] as RemoteAddress[], isOpening: false, here: new Set<string>() }
    const heard = { dialled: [] as string[], moved: [] as string[], served: new Set<string>() }
    const nodes = new NodeTunnels({
      edges: {
        exact: () => undefined,
        onPort: () => undefined,
        serves: () => false,
        serveIdle: async ({ id }) => heard.served.add(id),
        letGo: (id) => void heard.served.delete(id),
      },
      groups: { add() {}, delete() {}, follow: () => ({ members: [], release() {} }) },
      lookUpAddresses: async () => state.found,
      lookUpGroup: async () => [],
      dial: async ({ nodeId }, { version }) => {
        heard.dialled.push(`${nodeId} ${version}`)
        const answer = answers[nodeId]?.shift() ?? 'offline'
        // The message shows which node answered.
        return new DialFault(answer === 'offline' || answer === 'unreachable' ? answer : 'busy', `${nodeId} ${answer}`)
      },
      isHere: (tunnelId) => state.here.has(tunnelId),
      isOpening: () => state.isOpening,
      moved: (tunnelId) => void heard.moved.push(tunnelId),
      log,
      now: () => 0,
    })
    closers.push(() => nodes.close())
    /** The outcome for a visitor that was let in by this version. */
    const said = async (version = 'v_nd_a'): Promise<string | undefined> => {
      const outcome = await nodes.dial({ ...request, version })
      return outcome instanceof DialFault ? outcome.message : undefined
    }
    const letInHere = async (): Promise<string | undefined> => {
      const outcome = await nodes.dial(request)
      return outcome instanceof DialFault ? outcome.message : undefined
    }
    return { nodes, state, ...heard, said, letInHere }
  }

  test('are dialled again at a node that does not have them yet', async () => {
    const { nodes, said, dialled } = plane({ answers: { nd_a: ['offline', 'offline', 'there'] } })
    await nodes.lookUp('secure', NAME)
    assert.equal(await said(), 'nd_a there')
    assert.equal(dialled.length, 3)
  })

  test('are found where they have moved', async () => {
    const { nodes, state, said, dialled, moved } = plane({ answers: { nd_a: ['offline'], nd_b: ['offline', 'there'] } })
    await nodes.lookUp('secure', NAME)
    state.found = [placeAt('nd_b')]
    assert.equal(await said(), 'nd_b there')
    assert.deepEqual(dialled, ['nd_a v_nd_a', 'nd_b v_nd_b', 'nd_b v_nd_b'])
    assert.deepEqual(moved, ['tn_1'])
  })

  test('are not reached under rules that the visitor has not passed', async () => {
    const { nodes, state, said, dialled } = plane({ answers: { nd_a: ['offline'], nd_b: ['there'] } })
    await nodes.lookUp('secure', NAME)
    const guarded = { ...config, modules: { ip_restriction: { enabled: true } } } as EdgeConfig
    state.found = [placeAt('nd_b', { config: guarded })]
    assert.equal(await said(), 'nd_a offline')
    assert.deepEqual(dialled, ['nd_a v_nd_a'])
    // The next visitor has passed them.
    assert.equal(await said('v_nd_b'), 'nd_b there')
  })

  test('are given up when nobody has them, or their node cannot be reached', async () => {
    const { nodes, state, said, dialled } = plane({ answers: { nd_a: ['unreachable', 'offline'] } })
    await nodes.lookUp('secure', NAME)
    assert.equal(await said(), 'nd_a unreachable')
    assert.equal(dialled.length, 1)
    state.found = []
    assert.equal(await said(), 'nd_a offline')
    assert.equal(await said(), undefined)
  })

  test('stay while they are being opened here, and are forgotten when they are', async () => {
    const { nodes, state, said, served, moved } = plane({ answers: { nd_a: ['there'] } })
    await nodes.lookUp('secure', NAME)
    state.isOpening = true
    await nodes.portsChanged({ taken: [], free: [PLACE] })
    assert.equal(await said(), 'nd_a there')
    state.here.add('tn_1')
    nodes.cameHere('tn_1')
    state.isOpening = false
    assert.equal(await said(), undefined)
    // It is no longer served for another node; the tunnel here serves it.
    assert.deepEqual([[...served], moved], [[], ['tn_1']])
  })

  test('that have left this node are looked up for requests that came before', async () => {
    const { nodes, state, letInHere } = plane({ answers: { nd_b: ['there', 'there'] } })
    assert.equal(await letInHere(), undefined)
    state.found = [placeAt('nd_b')]
    nodes.leftHere('tn_1', { place: PLACE, config })
    assert.equal(await letInHere(), 'nd_b there')
  })

  test('that have left this node are not reached under rules other than those it had here', async () => {
    const { nodes, state, letInHere, dialled } = plane({ answers: { nd_b: ['there'] } })
    const guarded = { ...config, modules: { ip_restriction: { enabled: true } } } as EdgeConfig
    state.found = [placeAt('nd_b', { config: guarded })]
    nodes.leftHere('tn_1', { place: PLACE, config })
    assert.equal(await letInHere(), undefined)
    assert.deepEqual(dialled, [])
  })

  test('have no connections kept while their node is about to stop', async () => {
    const { nodes, moved } = plane({ answers: {} })
    await nodes.lookUp('secure', NAME)
    nodes.nodesChanged([nodeAt('nd_a', false), nodeAt('nd_b', true)])
    assert.deepEqual([nodes.mayKeep('tn_1'), moved], [true, []])
    nodes.nodesChanged([nodeAt('nd_a', true)])
    nodes.nodesChanged([nodeAt('nd_a', true)])
    assert.deepEqual([nodes.mayKeep('tn_1'), nodes.mayKeep('tn_2'), moved], [false, true, ['tn_1']])
  })
})
