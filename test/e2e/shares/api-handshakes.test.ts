/** Handshakes of API callers: a stranger's silent connections close each other, and a caller is answered. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { shared } from '../../../src/model/shared.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { visit } from '../../support/visitor.ts'

const AT_ONCE = 32
const MORE = 64

let platform: Platform
before(async () => {
  platform = await startPlatform({ flags: { 'api-tls': 'on', 'api-url': 'https://localhost' } })
})
after(() => platform.stop())

test('connections that begin no handshake keep nobody from the API', async (t) => {
  const { port } = new URL(platform.url)
  const silent = new Set<Socket>()
  t.after(() => {
    for (const socket of silent) socket.destroy()
  })
  let closed = 0
  const open = async (): Promise<void> => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: '127.0.0.66' })
    silent.add(socket)
    socket.on('error', () => {}).on('close', () => closed++)
    await once(socket, 'connect')
  }
  const call = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${platform.apiKey}`, 'service-version': '2' }
    const { status, text } = await visit(`https://localhost:${port}`, platform, { path: '/api_keys', headers })
    assert.equal(status, 200, text)
  }
  for (let left = shared.apiHandshakes.most; left > 0; left -= AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, open))
  await call()
  for (let i = 0; i < MORE; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, open))
  await call()
  await until('the oldest silent ones are closed', () => closed >= MORE)
})
