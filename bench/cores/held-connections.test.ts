import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'node:test'
import { acceptedBy, connectionsTo } from './held-connections.ts'

test('connections are read from /proc/net/tcp with the port of the client', () => {
  const lines = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0
   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0
   3: 0100007F:1F90 0100007F:C351 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
`
  assert.deepEqual(connectionsTo(0x1f90, lines), [{ inode: '101', from: 0xc350 }])
})

test('a connection is found at the process that has accepted it', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  const [accepted] = (await once(server, 'connection')) as [{ destroy(): void }]
  t.after(() => accepted.destroy())
  if (client.connecting) await once(client, 'connect')
  assert.deepEqual([...acceptedBy(process.pid, port)], [client.localPort])
})
