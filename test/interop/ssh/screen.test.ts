/** The screen that `ssh -t` shows: requests of visitors appear there as they happen, and nowhere else. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { type Key, keyFolder, makeKey, missing, ssh } from './openssh.ts'

describe('the screen of a client', { skip: missing }, () => {
  let platform: Platform
  let key: Key

  before(async () => {
    platform = await startPlatform()
    key = makeKey(keyFolder(), 'key')
    await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
  })
  after(() => platform.stop())

  test('shows the latency and each request to the tunnels, also those that the edge answered itself', async (t) => {
    const service = await httpUpstream(t, (_, response) => response.writeHead(204).end())
    const args = ['-tt', '-R', `screen.localhost:443:${service.address}`]
    const client = ssh(t, platform, key, args, ['http', '--basic-auth', 'user:password'])
    const [, url = ''] = await client.says(/Forwarding +(https:\/\/[\w.:-]+)/)
    await client.says(/Latency +[\d.]+ ms/)
    assert.equal((await visit(url, platform, { path: '/unknown?secret=1' })).status, 401)
    // Another worker reports its requests a moment later, so the next must not overtake this one.
    await client.says(/401 +[\d.]+ ms +GET +\/unknown\b(?!\?)/)
    const authorization = `Basic ${Buffer.from('user:password').toString('base64')}`
    assert.equal((await visit(url, platform, { path: '/known', headers: { authorization } })).status, 204)
    await client.says(/Connections +1 total/)
    await client.says(/204 +[\d.]+ ms +GET +\/known\b.*\r\n401 +[\d.]+ ms +GET +\/unknown\b(?!\?)/)
  })

  test('does not show requests to other tunnels', async (t) => {
    const service = await httpUpstream(t)
    const watching = ssh(t, platform, key, ['-tt', '-R', `mine.localhost:443:${service.address}`], ['http'])
    const plain = ssh(t, platform, key, ['-R', `yours.localhost:443:${service.address}`], ['http'])
    const [, mine = ''] = await watching.says(/Forwarding +(https:\/\/[\w.:-]+)/)
    assert.equal((await visit(await plain.url(), platform, { path: '/yours' })).status, 200)
    assert.equal((await visit(mine, platform, { path: '/mine' })).status, 200)
    await watching.says(/GET +\/mine/)
    assert.doesNotMatch(watching.out(), /\/yours/)
    assert.doesNotMatch(plain.out(), /GET|Latency/)
  })
})
