/** Traffic through this machine's `ssh` and `dbclient`: in bulk, at once, half-closed, and beside a stalled stream. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { readAll } from '../../support/read-all.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import * as dropbear from './dropbear.ts'
import * as openssh from './openssh.ts'

const MEGABYTES = 20 * 1024 * 1024

const clients = [
  { name: 'ssh', ...openssh, run: openssh.ssh },
  { name: 'dbclient', ...dropbear, run: dropbear.dbclient },
]

for (const { name, missing, run, makeKey } of clients)
  describe(`traffic through ${name}`, { skip: missing }, () => {
    let platform: Platform
    let key: openssh.Key

    before(async () => {
      platform = await startPlatform()
      key = makeKey(openssh.keyFolder(), 'key')
      await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
    })
    after(() => platform.stop())

    test('20 MB each way arrive whole, and one way ends before the other', async (t) => {
      const back = randomBytes(MEGABYTES)
      // Answers only after it received everything and the visitor's end.
      const service = await tcpUpstream(t, (socket) => {
        socket.allowHalfOpen = true
        const hash = createHash('sha256')
        socket.on('data', (chunk) => hash.update(chunk))
        socket.on('end', () => {
          socket.write(hash.digest())
          socket.end(back)
        })
      })
      const client = run(t, platform, key, ['-R', `0:${service.address}`], ['tcp'])
      const socket = await dialTcp(await client.url())
      socket.allowHalfOpen = true
      const there = randomBytes(MEGABYTES)
      socket.end(there)
      const answer = await readAll(socket)
      assert.deepEqual(answer.subarray(0, 32), digest(there))
      assert.deepEqual(digest(answer.subarray(32)), digest(back))
    })

    test('200 requests at once are all answered', async (t) => {
      const service = await httpUpstream(t)
      const client = run(t, platform, key, ['-R', `80:${service.address}`], ['http'])
      const address = await client.url()
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => visit(address, platform, { path: `/${i}` })),
      )
      for (const [i, { status, text }] of answers.entries()) {
        assert.equal(status, 200)
        assert.ok(text.includes(`"/${i}"`))
      }
    })

    test('a visitor that does not read does not block others', async (t) => {
      const flood = await tcpUpstream(t, (socket) => {
        socket.on('error', () => {})
        socket.once('data', (asked) => {
          if (asked.toString() === 'flood') socket.write(Buffer.alloc(MEGABYTES))
          else socket.end('quick')
        })
      })
      const client = run(t, platform, key, ['-R', `0:${flood.address}`], ['tcp'])
      const address = await client.url()
      const stalled = await dialTcp(address)
      stalled.pause()
      stalled.write('flood')
      await once(stalled, 'readable')
      const quick = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const socket = await dialTcp(address)
          socket.write('quick')
          const heard = (await readAll(socket)).toString()
          // Its own direction is still open, and the server would wait for it when it stops.
          socket.destroy()
          return heard
        }),
      )
      assert.deepEqual(new Set(quick), new Set(['quick']))
      stalled.destroy()
    })

    test('a service that is down is a bad gateway', async (t) => {
      const client = run(t, platform, key, ['-R', '80:127.0.0.1:1'], ['http'])
      assert.equal((await visit(await client.url(), platform)).status, 502)
    })

    test('a client that comes back gets its name again', async (t) => {
      const service = await httpUpstream(t)
      for (let i = 0; i < 3; i++) {
        const client = run(t, platform, key, ['-R', `again.localhost:80:${service.address}`], ['http'])
        const address = await client.url()
        assert.match(address, /^http:\/\/again\.localhost/)
        assert.equal((await visit(address, platform)).status, 200)
        await client.stop()
        await until('the name is offline', async () => (await visit(address, platform)).status === 404)
      }
    })
  })

for (const cipher of ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes256-ctr']) {
  test(`keys are re-exchanged in the middle of a stream under ${cipher}`, { skip: openssh.missing }, async (t) => {
    const platform = await startPlatform()
    t.after(() => platform.stop())
    const key = openssh.makeKey(openssh.keyFolder(), 'key')
    await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
    const service = await tcpUpstream(t)
    const args = ['-c', cipher, '-o', 'RekeyLimit=1M', '-R', `0:${service.address}`]
    const client = openssh.ssh(t, platform, key, args, ['tcp'])
    const sent = randomBytes(8 * 1024 * 1024).toString('base64')
    assert.ok((await exchange(await dialTcp(await client.url()), sent)) === sent, 'all came back')
  })
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
