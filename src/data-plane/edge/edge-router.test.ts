/** The door when a module of an edge breaks: no visitor gets in, and the log says why. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { describe, test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import type { Edge } from './compiled-edge.ts'
import { DisconnectWatch } from './detect-disconnects.ts'
import { EdgeRouter } from './edge-router.ts'
import type { EdgeTable } from './edge-table.ts'
import type { ConnectionRecord } from './relay-connection.ts'
import { testEdge } from './testing/test-http-plane.ts'
import type { TlsServers } from './tls-servers.ts'
import { TrafficCount } from './traffic-count.ts'

test('a module that breaks at a connection refuses it and is logged with its cause, once a minute', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const accept: Edge['accept'] = [
    () => {
      throw new Error('module ip_restriction', { cause: new Error('the rules are gone') })
    },
  ]
  const edge: Edge = { ...testEdge({ id: 'edgtcp_1', kind: 'tcp', names: [] }), accept }
  const lines: string[] = []
  const records: ConnectionRecord[] = []
  const reached = new EdgeRouter({
    // The parts that a TCP port needs.
    edges: { onPort: () => edge } as unknown as EdgeTable,
    tls: {} as TlsServers,
    serveHttp: () => assert.fail(),
    counts: new TrafficCount(),
    departed: new DisconnectWatch(),
    log: createLog({ format: 'json', destination: { write: (line) => lines.push(line) } }),
    onRecord: (record) => records.push(record),
    defaultCertificate: () => assert.fail(),
  })
  const peer = { ip: '127.0.0.1', port: 1, serverIp: '127.0.0.1', serverPort: 2, startedAt: 0 }
  const server = createServer((socket) => reached.onPort(socket, 2, peer)).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const visit = async (): Promise<void> => {
    const visitor = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    visitor.resume()
    await once(visitor, 'close')
  }
  for (let i = 0; i < 5; i++) await visit()
  assert.deepEqual(
    records.map(({ fault }) => fault),
    Array.from({ length: 5 }, () => 'BROKEN_MODULE'),
  )
  assert.equal(lines.length, 1)
  const [line] = lines.map((text) => JSON.parse(text))
  assert.deepEqual([line.level, line.msg, line.edge], ['error', 'module of an edge failed', 'edgtcp_1'])
  assert.match(JSON.stringify(line.err), /module ip_restriction.*the rules are gone/s)

  t.mock.timers.tick(60_000)
  assert.equal(lines.length, 2)
  assert.equal(JSON.parse(lines[1] ?? '').visits, 4)
})

test('a handshake whose name could not be looked up in time is left to its request, not to a wildcard', () => {
  const peer = { ip: '192.0.2.1', port: 1, serverIp: '127.0.0.1', serverPort: 2, startedAt: 0 }
  const shaken: string[] = []
  const router = new EdgeRouter({
    edges: { find: () => assert.fail('a wildcard was asked') } as unknown as EdgeTable,
    tls: { handshake: ({ id }: { id: string }) => void shaken.push(id) } as unknown as TlsServers,
    serveHttp: () => assert.fail(),
    counts: new TrafficCount(),
    departed: new DisconnectWatch(),
    log: createLog({ level: 'silent', format: 'json', destination: { write() {} } }),
    onRecord: () => assert.fail(),
    defaultCertificate: () => ({ cert: '', key: '' }),
    lookUp: (_listener, _name, _visitor, ip) => {
      assert.equal(ip, peer.ip)
      return 'busy'
    },
  })
  router.onGreeted({ hello: { serverName: 'a.example.com' }, peer } as unknown as Parameters<
    EdgeRouter['onGreeted']
  >[0])
  // The edge of nobody.
  assert.deepEqual(shaken, [''])
})

describe('a connection that comes in later than it came', () => {
  const peer = { ip: '192.0.2.1', port: 1, serverIp: '127.0.0.1', serverPort: 2, startedAt: 0 }
  const routerWith = (edges: object, tls: object = {}) =>
    new EdgeRouter({
      edges: edges as EdgeTable,
      tls: tls as TlsServers,
      serveHttp: () => assert.fail(),
      counts: new TrafficCount(),
      departed: new DisconnectWatch(),
      log: createLog({ level: 'silent', format: 'json', destination: { write() {} } }),
      onRecord: () => {},
      defaultCertificate: () => assert.fail(),
    })

  for (const [what, isThere, isAdmitted, carried] of [
    ['whose edge was deleted', false, true, 0],
    ['whose address is no longer admitted', true, false, 0],
    ['of an edge that is still there', true, true, 1],
  ] as const) {
    test(`after its handshake: one ${what}`, () => {
      const edge: Edge = { ...testEdge({ id: 'edgtls_1', kind: 'tls', names: ['a.test'] }), tls: {} }
      let finish: (secured: object) => void = () => assert.fail('no handshake')
      const router = routerWith(
        { find: () => edge, has: () => isThere, served: () => (isThere ? edge : undefined) },
        {
          handshake: (_edge: unknown, _greeted: unknown, done: typeof finish) => {
            finish = done
          },
        },
      )
      const socket = new Socket()
      const greeted = { socket, hello: { serverName: 'a.test' }, peer }
      router.onGreeted(greeted as unknown as Parameters<EdgeRouter['onGreeted']>[0])
      router.dropUnadmitted(() => isAdmitted)
      finish({ socket, facts: { serverName: 'a.test' } })
      assert.deepEqual([router.carried, socket.destroyed], [carried, carried === 0])
      router.cut()
    })
  }

  for (const isAdmitted of [true, false]) {
    test(`once its edge is compiled, by an address that is ${isAdmitted ? 'still' : 'no longer'} admitted`, async () => {
      const ready = Promise.withResolvers<void>()
      let letIn = 0
      const accept: Edge['accept'] = [() => void letIn++]
      const edge: Edge = { ...testEdge({ id: 'edgtcp_1', kind: 'tcp', names: [] }), accept }
      let served: Edge = { ...edge, starting: ready.promise }
      const router = routerWith({ onPort: () => served })
      const socket = new Socket()
      router.onPort(socket, 2, peer)
      router.dropUnadmitted(() => isAdmitted)
      served = edge
      ready.resolve()
      await ready.promise
      await Promise.resolve()
      assert.equal(letIn, isAdmitted ? 1 : 0)
      assert.ok(isAdmitted || socket.destroyed)
      router.cut()
    })
  }
})
