/** The door when a module of an edge breaks: no visitor gets in, and the log says why. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'node:test'
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
