/** Refusals of the gateway as a person with `ssh` sees them, and what ends a session from outside. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { type Key, keyFolder, makeKey, missing, ssh } from './openssh.ts'

describe('what is refused', { skip: missing }, () => {
  let platform: Platform
  let key: Key
  let narrow: Key
  let stranger: Key

  before(async () => {
    platform = await startPlatform()
    const folder = keyFolder()
    key = makeKey(folder, 'key')
    narrow = makeKey(folder, 'narrow')
    stranger = makeKey(folder, 'stranger')
    await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
    const acl = ['bind:mine.localhost']
    await platform.admin.create('/ssh_credentials', { public_key: narrow.publicLine, acl })
  })
  after(() => platform.stop())

  test('an unknown key', async (t) => {
    const client = ssh(t, platform, stranger, ['-R', '80:localhost:1'], ['http'])
    assert.equal(await client.ended, 255)
    assert.match(client.err(), /No SSH credential has the key SHA256:.*ERR_NGROK_1102[\s\S]*Permission denied/)
  })

  const refused: readonly [what: string, args: string[], command: string[], says: RegExp][] = [
    ['no command', ['-R', '80:localhost:1'], [], /http, tls, tcp or labeled.*ERR_NGROK_1107/],
    ['a shell', ['-R', '80:localhost:1'], ['bash'], /`bash` is not a command.*ERR_NGROK_1108/],
    ['files', ['-s'], ['sftp'], /no files.*ERR_NGROK_1108/],
    ['another port', ['-R', '8080:localhost:1'], ['http'], /80 for http or 443 for https.*ERR_NGROK_1113/],
    ['a name twice', ['-R', 'a.localhost:443:localhost:1'], ['http', '--hostname=b'], /Give it once.*ERR_NGROK_1114/],
    ['an unknown flag', ['-R', '80:localhost:1'], ['http', '--domian=x'], /did you mean --domain.*ERR_NGROK_1109/],
    ['no forward', [], ['http'], /Ask for one with `-R`.*ERR_NGROK_1112/],
  ]
  for (const [what, args, command, says] of refused) {
    test(`${what}: printed to stderr, with exit status 1`, async (t) => {
      const client = ssh(t, platform, key, args, command)
      assert.equal(await client.ended, 1)
      assert.match(client.err(), says)
    })
  }

  test('-N: the reason comes with the disconnect', async (t) => {
    const client = ssh(t, platform, key, ['-N', '-R', '80:localhost:1'], [])
    assert.equal(await client.ended, 255)
    assert.match(client.err(), /leave out `-N`.*ERR_NGROK_1111/)
  })

  test('a name that the ACL does not allow, with the rule that would', async (t) => {
    const client = ssh(t, platform, narrow, ['-R', 'other.localhost:443:localhost:1'], ['http'])
    assert.equal(await client.ended, 1)
    assert.match(client.err(), /does not allow.*add the rule `bind:other\.localhost`.*ERR_NGROK_316/)
  })

  test('--help is printed', async (t) => {
    const client = ssh(t, platform, key, [], ['tcp', '--help'])
    assert.equal(await client.ended, 0)
    assert.match(client.out(), /--remote-addr <host:port>/)
  })

  test('the API stops a session, and refuses to restart or update one', async (t) => {
    const service = await httpUpstream(t)
    const client = ssh(t, platform, key, ['-R', `stopped.localhost:80:${service.address}`], ['http'])
    await client.url()
    const { tunnel_sessions } = (await platform.admin.get('/tunnel_sessions')) as { tunnel_sessions: { id: string }[] }
    const id = tunnel_sessions[0]?.id ?? ''
    for (const command of ['restart', 'update']) {
      await platform.admin.refused('ERR_SSH_COMMAND_UNSUPPORTED', 'POST', `/tunnel_sessions/${id}/${command}`, {
        body: {},
      })
    }
    await platform.admin.send('POST', `/tunnel_sessions/${id}/stop`, { body: {} })
    assert.equal(await client.ended, 255)
    assert.match(client.err(), /stopped through the API/)
  })

  test('deleting a credential ends its sessions, and it opens no more', async (t) => {
    const own = makeKey(keyFolder(), 'own')
    const { id } = await platform.admin.create('/ssh_credentials', { public_key: own.publicLine })
    const client = ssh(t, platform, own, ['-R', '80:localhost:1'], ['http'])
    await client.url()
    await platform.admin.delete(`/ssh_credentials/${id}`)
    assert.equal(await client.ended, 255)
    await until('its session is gone', async () => {
      const { tunnel_sessions } = (await platform.admin.get('/tunnel_sessions')) as { tunnel_sessions: unknown[] }
      return tunnel_sessions.length === 0
    })
    assert.equal(await ssh(t, platform, own, ['-R', '80:localhost:1'], ['http']).ended, 255)
  })
})
