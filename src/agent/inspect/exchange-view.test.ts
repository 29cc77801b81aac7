import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { brotliCompressSync, constants, deflateRawSync, zstdCompressSync } from 'node:zlib'
import { tlsIdentity } from '../../../test/support/tls-identity.ts'
import { until } from '../../../test/support/until.ts'
import { testInspector } from '../testing/test-inspector.ts'

const text = '{"é":1}'
const packed: Readonly<Record<string, Buffer>> = { br: brotliCompressSync(text), zstd: zstdCompressSync(text) }
const word = deflateRawSync('hello', { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
const agreed = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n'

test('compressed bodies and messages are shown as they were sent and decompressed', async (t) => {
  const { ask, open, visit } = await testInspector(t, await tlsIdentity())
  const server = createServer((request, response) => {
    const coding = request.url?.slice(1) ?? ''
    response.setHeader('content-encoding', coding).end(packed[coding])
  })
  server.on('upgrade', (_request, socket) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${agreed}`)
    socket.end(Buffer.concat([Buffer.of(0xc1, word.length), word]))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { id } = await open('web', { addr: (server.address() as AddressInfo).port }) // it listens on a port
  const latest = async (path: string) => {
    const item = await until('it is over', async () => {
      const { exchanges } = (await ask('GET', '/api/exchanges')).json
      return exchanges[0]?.path === path && exchanges[0].is_open === false && exchanges[0]
    })
    return (await ask('GET', item.uri)).json
  }
  for (const [coding, { length }] of Object.entries(packed)) {
    await visit(id, `GET /${coding} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    const { size, unpacked } = (await latest(`/${coding}`)).response.body
    assert.deepEqual([size, unpacked], [length, { coding, size: 8, is_cut: false, content: text }])
  }
  await visit(id, 'GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  const [frame] = (await latest('/ws')).frames
  const unpacked = { coding: 'permessage-deflate', size: 5, is_cut: false, encoding: 'text', content: 'hello' }
  assert.deepEqual([frame.is_compressed, frame.size, frame.unpacked], [true, word.length, unpacked])
})
