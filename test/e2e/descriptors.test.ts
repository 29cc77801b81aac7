/** A server with 256 file descriptors and more visitors than that: it says so, goes on, and comes back by itself. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { limitDescriptors } from '../support/descriptor-limit.ts'
import { metric } from '../support/metrics.ts'
import { serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-descriptors-'))
after(() => rmSync(root, { recursive: true, force: true }))

const LIMIT = 256

for (const listener of ['http', 'https'] as const) {
  test(`${listener}: a crowd leaves agents and the API their descriptors, is told of and counted, and others get in after it`, async (t) => {
    const server = await serve({ dataDir: join(root, listener) })
    const sockets: Socket[] = []
    t.after(async () => {
      for (const socket of sockets) socket.destroy()
      server.kill('SIGKILL')
      await server.ended
    })
    const impossible = limitDescriptors(server.child.pid, LIMIT)
    if (impossible) return t.skip(impossible)
    const come = (address: string): Socket => {
      const [host, port] = address.split(':')
      const socket = connect({ host, port: Number(port) }).on('error', () => {})
      sockets.push(socket)
      return socket
    }
    for (let i = 0; i < LIMIT / 3; i++) come(server[listener])
    await until('connections are closed for want of descriptors', async () => {
      come(server[listener])
      return (await metric(server.metricsUrl, 'postern_descriptor_refusals_total')) > 0
    })
    await server.says(/"level":"error".*too few file descriptors/)
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200, 'the API and the database work on')
    assert.ok(await stays(come(server.agents)), 'agents get in')

    for (const socket of sockets.splice(0)) socket.destroy()
    await until('a visitor is let in again', () => stays(come(server[listener])))
    const { code, err } = await server.stop()
    assert.equal(code, 0)
    assert.equal(err.match(/too few file descriptors/g)?.length, 1, 'one line a minute')
  })
}

/** Whether a connection is still open after a moment in which the server would have closed it. */
async function stays(socket: Socket): Promise<boolean> {
  const closed = once(socket, 'close').then(() => false)
  const open = new Promise<boolean>((resolve) => setTimeout(resolve, 200, true))
  return Promise.race([closed, open])
}
