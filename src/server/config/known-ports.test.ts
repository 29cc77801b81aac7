import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Descriptors } from '../../lib/files/descriptors.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { listenOn, listenText } from '../../lib/net/listen-on.ts'
import { withKnownPorts } from './known-ports.ts'
import { openEarly, openListeners, plainListeners } from './listeners.ts'
import { readSettings } from './read-settings.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })
const anywhere = '127.0.0.1:0'
const flags = Object.fromEntries(['agent', 'ssh', 'https', 'http'].map((name) => [`${name}-listen`, anywhere]))
const alone = readSettings({ flags, env: {}, cwd: '/srv' })
const database = { 'database-url': 'postgres://postern@db.example.com/postern' }
const inCluster = readSettings({ flags: { ...flags, ...database, 'cluster-listen': anywhere }, env: {}, cwd: '/srv' })

function descriptorsOf(t: TestContext): Descriptors {
  const descriptors = new Descriptors({ log })
  t.after(() => descriptors.stop())
  return descriptors
}

for (const isShared of [false, true]) {
  test(`ports that the system chooses are known before they are served${isShared ? ', and can be shared' : ''}`, async (t) => {
    const opening = { descriptors: descriptorsOf(t), isShared }
    const known = await withKnownPorts(plainListeners(inCluster), inCluster, opening)
    const { listeners, ports } = known
    t.after(() => known.close())
    assert.ok(ports.agent > 0 && ports.cluster > 0 && ports.agent !== ports.cluster)
    const waiting = connect(ports.cluster, '127.0.0.1')
    t.after(() => waiting.destroy())
    await once(waiting, 'connect')
    const server = createServer((socket) => socket.end('here'))
    t.after(() => server.close())
    assert.ok(listeners.cluster)
    assert.equal((await listenOn(server, listeners.cluster, () => {})).port, ports.cluster)
    assert.equal(String((await once(waiting, 'data'))[0]), 'here')
    if (!isShared) return
    const other = createServer()
    t.after(() => other.close())
    await listenOn(other, { host: '127.0.0.1', port: ports.cluster, isShared }, () => {})
  })
}

test('unused listeners are closed', async (t) => {
  const opening = { descriptors: descriptorsOf(t), isShared: false }
  const known = await withKnownPorts(plainListeners(inCluster), inCluster, opening)
  known.close()
  const refused = connect(known.ports.cluster, '127.0.0.1')
  const [error] = await once(refused, 'error')
  assert.equal(error.code, 'ECONNREFUSED')
})

test('configured ports are not opened early, and a node on its own opens none', async (t) => {
  const opening = { descriptors: descriptorsOf(t), isShared: false }
  const fixed = { agent: { host: '127.0.0.1', port: 7443 }, cluster: { host: '127.0.0.1', port: 7444 } }
  const known = await withKnownPorts(fixed, inCluster, opening)
  assert.deepEqual([known.listeners, known.ports], [fixed, { agent: 7443, cluster: 7444 }])
  const { listeners, ports } = await withKnownPorts(plainListeners(alone), alone, opening)
  assert.deepEqual(listeners, { agent: alone.agentListen, cluster: undefined })
  assert.deepEqual(ports, { agent: 0, cluster: 0 })
})

test('the listener for other nodes is opened early, or handed in, or absent', async (t) => {
  const descriptors = descriptorsOf(t)
  const none = { named: new Map(), tcp: new Map(), close() {} }
  const early = await openListeners(inCluster, none, descriptors)
  t.after(() => early.close())
  assert.ok(early.cluster)
  assert.doesNotMatch(listenText(early.cluster), /:0$/)

  const handed = await openEarly('cluster', { host: '127.0.0.1', port: 0 }, descriptors)
  const taken = await openListeners(inCluster, { ...none, named: new Map([['cluster', handed]]) }, descriptors)
  t.after(() => taken.close())
  assert.equal(taken.cluster, handed)
  assert.deepEqual(taken.handed, ['cluster'])

  const without = await openListeners(alone, none, descriptors)
  t.after(() => without.close())
  assert.equal(without.cluster, undefined)
})
