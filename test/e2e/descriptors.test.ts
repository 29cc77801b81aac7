/** A server with 256 file descriptors and more visitors than that: it logs it, keeps running, and recovers by itself. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { metric } from '../support/metrics.ts'
import { serve } from '../support/server-process.ts'
import { testWorkers } from '../support/test-workers.ts'
import { until } from '../support/until.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-descriptors-'))
after(() => rmSync(root, { recursive: true, force: true }))

const LIMIT = 256
/** With what the server has open anyway, more than it admits, and fewer than the limit. */
const CROWD = 180

for (const listener of ['http', 'https'] as const) {
  test(`${listener}: a crowd leaves descriptors for agents and the API, is logged and counted, and others get in after it`, async (t) => {
    const { error } = spawnSync('prlimit', ['--version'])
    if (error) return t.skip(`prlimit is needed: ${error.message}`)
    const server = await serve({
      dataDir: join(root, listener),
      node: 'prlimit',
      nodeFlags: [`--nofile=${LIMIT}:${LIMIT}`, process.execPath],
      // At most one worker: the limit is that of one process, and the crowd is sized for that.
      flags: { workers: String(Math.min(testWorkers, 1)) },
    })
    const sockets: Socket[] = []
    t.after(async () => {
      for (const socket of sockets) socket.destroy()
      server.kill('SIGKILL')
      await server.ended
    })
    const come = (address: string): Socket => {
      const [host, port] = address.split(':')
      const socket = connect({ host, port: Number(port) }).on('error', () => {})
      sockets.push(socket)
      return socket
    }
    await until('connections are closed for want of descriptors', async () => {
      // Closed and timed-out connections are replaced, but never so many that the system itself refuses them.
      const open = sockets.filter((socket) => !socket.closed).length
      for (let i = open; i < CROWD; i++) come(server[listener])
      return (await metric(server.metricsUrl, 'postern_descriptor_refusals_total')) > 0
    })
    await server.says(/"level":"error".*too few file descriptors/)
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200, 'the API and the database still work')
    assert.ok(await stays(come(server.agents)), 'agents get in')

    for (const socket of sockets.splice(0)) socket.destroy()
    await until('a visitor is let in again', () => stays(come(server[listener])))
    const refused = await metric(server.metricsUrl, 'postern_descriptor_refusals_total')
    const { code, err } = await server.stop()
    assert.equal(code, 0)
    const logged = err.split('\n').filter((line) => line.includes('too few file descriptors'))
    const connections = logged.map((line) => JSON.parse(line).connections as number)
    assert.ok(logged.length <= 2, 'one line a minute, and at the end one for the rest')
    assert.equal(
      connections.reduce((sum, count) => sum + count, 0),
      refused,
    )
  })
}

/** Whether a connection is still open after a moment in which the server would have closed it. */
async function stays(socket: Socket): Promise<boolean> {
  const closed = once(socket, 'close').then(() => false)
  const open = new Promise<boolean>((resolve) => setTimeout(resolve, 200, true))
  return Promise.race([closed, open])
}
