/** Commands to a real agent process through the API: it stops, restarts as another session, or says why it cannot. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAgent } from '../support/agent-process.ts'
import type { Json } from '../support/api-client.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { assertNobodyOnline, online, sessionsOnline } from '../support/presence.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

let platform: Platform
before(async () => {
  platform = await startPlatform({ flags: { 'drain-timeout': '1s' } })
})
after(() => platform.stop())

test('restart, stop and update act on one agent, and not on another', async (t) => {
  const { agents: server, caFile, authtoken, admin } = platform
  const { address } = await httpUpstream(t, (_, response) => response.end('web'))
  const start = (name: string) =>
    startAgent(t, {
      ...{ server, caFile, authtoken, metadata: name },
      tunnels: { web: { addr: address, domain: `${name}.example.com` } },
    })
  const one = await start('one')
  const other = await start('other')
  const url = (name: string): string => `https://${name}.example.com:${platform.httpsPort}`
  const find = async (name: string): Promise<Json> => {
    const { sessions } = await online(platform)
    return sessions.find(({ metadata }) => metadata === name)
  }
  const [first, untouched] = [await find('one'), await find('other')]

  const update = await admin.send('POST', `/tunnel_sessions/${first.id}/update`)
  assert.deepEqual([update.status, update.body.error_code], [400, 'ERR_COMMAND_UNSUPPORTED'])
  assert.match(update.body.msg, /no source of updates/)

  // D46: another process is another session, under the same name.
  assert.equal((await admin.send('POST', `/tunnel_sessions/${first.id}/restart`)).status, 204)
  const second = await until('the agent is back', async () => {
    const found = await find('one')
    return found !== undefined && found.id !== first.id && (await online(platform)).tunnels.length === 2 && found
  })
  assert.equal((await admin.send('GET', `/tunnel_sessions/${first.id}`)).status, 404)
  assert.equal((await visit(url('one'), platform)).text, 'web')

  assert.equal((await admin.send('POST', `/tunnel_sessions/${second.id}/stop`)).status, 204)
  const { code, err } = await one.ended
  assert.deepEqual([code, err], [0, ''])
  const { sessions } = await sessionsOnline(platform, 1)
  assert.deepEqual(sessions, [untouched])
  assert.equal((await visit(url('other'), platform)).text, 'web')

  other.kill('SIGINT')
  assert.equal((await other.ended).code, 0)
  await sessionsOnline(platform, 0)
  await assertNobodyOnline(platform)
})
