/** Memory of uploads that their service does not read: limited for each, as Node and as the system count it. */
import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { describe, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { startWatched } from '../soak/watched-server.ts'
import { until } from '../support/until.ts'
import { tcpUpstream } from '../support/upstream.ts'
import { dialled, versions } from './edges/visitor.ts'

const UPLOADS = 50
const KIB = 1024

/** What a stalled upload may hold, in bytes: at most 256 KiB of its stream, and the objects of its connection. */
const EACH_BYTES = (256 + 64) * KIB

/**
 * How much the whole process may grow, in bytes: what the uploads hold, plus what the allocator keeps once. It used to
 * grow by 60 to 90 MiB.
 */
const ALL_BYTES = UPLOADS * EACH_BYTES + 30 * KIB * KIB

describe('50 stalled uploads hold only their own buffers, and not the memory around them', () => {
  for (const version of versions) {
    test(`HTTP/${version}`, async (t) => {
      const watched = await startWatched(t)
      const { api, ca } = watched
      const port = Number(watched.server.https.split(':').at(-1))
      let reached = 0
      const service = await tcpUpstream(t, (socket) => {
        reached++
        socket.pause()
      })
      const backend = await api.create('/backends/static', { address: service.address, tls: { enabled: false } })
      const name = 'uploads.edge.test'
      const edge = await api.create('/edges/https', { hostports: [`${name}:443`] })
      await api.create(`/edges/https/${edge.id}/routes`, {
        match_type: 'path_prefix',
        match: '/',
        backend: { backend_id: backend.id },
      })
      const dial = (): Promise<TLSSocket> => dialled({ name, port, ca }, { version })
      for (let i = 0; i < 20; i++) (await dial()).destroy()

      const before = await watched.holdings({ collects: true })
      const visitors: TLSSocket[] = []
      t.after(() => {
        for (const visitor of visitors) visitor.destroy()
      })
      for (let i = 0; i < UPLOADS; i++) {
        const visitor = await dial()
        visitor.on('error', () => {})
        visitors.push(visitor)
        upload(visitor, { version, name })
      }
      let [seen, looks] = [-1, 0]
      await until('all uploads stall', async () => {
        const sent = visitors.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0)
        // Unchanged several times: on a slow machine the server may need a while to read.
        looks = reached >= UPLOADS && sent === seen ? looks + 1 : 0
        seen = sent
        await new Promise((resolve) => setTimeout(resolve, 300))
        return looks >= 3
      })
      const { rss, heapUsed, external } = await watched.holdings({ collects: true })
      const each = (heapUsed + external - before.heapUsed - before.external) / UPLOADS
      t.diagnostic(`each ${Math.round(each / KIB)} KiB, the process ${Math.round((rss - before.rss) / KIB / KIB)} MiB`)
      assert.ok(each <= EACH_BYTES, `each holds ${Math.round(each / KIB)} KiB`)
      assert.ok(rss - before.rss <= ALL_BYTES, `the process grew by ${Math.round((rss - before.rss) / KIB / KIB)} MiB`)
    })
  }
})

/** Sends more than all buffers on the path hold, and never ends. */
function upload(visitor: TLSSocket, { version, name }: { version: string; name: string }): void {
  if (version === '2') {
    const session = connectHttp2(`https://${name}`, { createConnection: () => visitor })
    session.on('error', () => {})
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write(BODY)
    return
  }
  visitor.write(`POST / HTTP/1.1\r\nHost: ${name}\r\nContent-Length: ${2 ** 40}\r\n\r\n`)
  visitor.write(BODY)
}

const BODY = Buffer.alloc(16 * KIB * KIB)
