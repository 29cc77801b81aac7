/** A client that is a library, not OpenSSH: the same gateway, the same traffic. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { Channel } from 'ssh2'
import { clientKey, TestClient } from '../../../src/data-plane/ssh/testing/test-gateway.ts'
import { startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'

test('ssh2 as client: command first, forward second, and visitors are served', async (t) => {
  const platform = await startPlatform()
  t.after(() => platform.stop())
  await platform.admin.create('/ssh_credentials', { public_key: clientKey.publicLine })
  const service = await httpUpstream(t)
  const client = await new TestClient(platform.sshPort).login()
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => {
    const channel = accept()
    const socket = connect(service.port, '127.0.0.1')
    channel.pipe(socket).pipe(channel)
  })
  const run = await client.exec('http')
  assert.equal(await client.forward('library.localhost', 80), 80)
  const url = await until('it gets its address', () => /Forwarding +(\S+)/.exec(run.out)?.[1])
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => visit(url, platform, { path: `/${i}` })))
  for (const [i, { status, text }] of answers.entries()) {
    assert.equal(status, 200)
    assert.ok(text.includes(`"/${i}"`))
  }
  await client.leave()
  await until('the name is offline', async () => (await visit(url, platform)).status === 404)
})
