/** Every form of the command that docs/ssh.md shows, with the `ssh` of this machine. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type TcpRange, tcpRange } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { httpUpstream, tcpUpstream, tlsUpstream } from '../../support/upstream.ts'
import { dialTcp, dialTls, exchange, visit } from '../../support/visitor.ts'
import { type Key, keyFolder, makeKey, missing, ssh } from './openssh.ts'

describe('the forms of the command', { skip: missing }, () => {
  let platform: Platform
  let range: TcpRange
  let folder = ''
  let key: Key

  before(async () => {
    range = await tcpRange(100)
    platform = await startPlatform({ flags: range.flags })
    folder = keyFolder()
    key = makeKey(folder, 'key')
    await platform.admin.create('/ssh_credentials', { public_key: key.publicLine })
  })
  after(() => platform.stop())

  const webForms: readonly [what: string, place: string, command: string[], url: RegExp, user?: string][] = [
    ['plain HTTP at a random name', '80', ['http'], /^http:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost/],
    ['HTTPS at a random name', '443', ['http'], /^https:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost/, 'v2'],
    ['the usual port', '0', ['http'], /^https:\/\//],
    ['the usual port of a scheme', '0', ['http', '--scheme=http'], /^http:\/\//],
    ['no address', ':443', ['http'], /^https:\/\//],
    ['a name in the forward', 'app.localhost:443', ['http'], /^https:\/\/app\.localhost/],
    ['a name in a flag', '443', ['http', '--domain', 'flag.localhost'], /^https:\/\/flag\.localhost/],
    ['a subdomain', '443', ['http', '-subdomain=sub'], /^https:\/\/sub\.localhost/],
    ['a URL', '0', ['http', '--url', 'https://url.localhost'], /^https:\/\/url\.localhost/],
    ['the port of the service', '80', ['http', '3000'], /^http:\/\//, 'somebody'],
  ]
  for (const [what, place, command, url, user] of webForms) {
    test(`${what}: -R ${place}:… ${command.join(' ')}`, async (t) => {
      const service = await httpUpstream(t)
      const client = ssh(t, platform, key, ['-R', `${place}:${service.address}`], command, user ? { user } : {})
      const address = await client.url()
      assert.match(address, url)
      const { status, text } = await visit(address, platform, { path: '/hello' })
      assert.equal(status, 200)
      assert.match(text, /\/hello/)
      await client.stop()
    })
  }

  test('a wildcard serves every name below it', async (t) => {
    const service = await httpUpstream(t)
    const client = ssh(t, platform, key, ['-R', `*.wild.localhost:443:${service.address}`], ['http'])
    const address = await client.url()
    for (const name of ['a.wild.localhost', 'b.c.wild.localhost']) {
      assert.equal((await visit(address.replace('*.wild.localhost', name), platform)).status, 200)
    }
  })

  test('guards and headers of the agent', async (t) => {
    const service = await httpUpstream(t)
    const command = ['http', '--basic-auth', "'user:pass word'", "--request-header-add='x-added: yes'"]
    const client = ssh(t, platform, key, ['-R', `guarded.localhost:443:${service.address}`], command)
    const address = await client.url()
    assert.equal((await visit(address, platform)).status, 401)
    const authorization = `Basic ${Buffer.from('user:pass word').toString('base64')}`
    const { status, text } = await visit(address, platform, { headers: { authorization } })
    assert.equal(status, 200)
    assert.match(text, /"x-added":"yes"/)
  })

  test('several forwards in one connection, each to its own service', async (t) => {
    const [one, two] = [await tcpUpstream(t, (socket) => socket.end('one')), await tcpUpstream(t, (s) => s.end('two'))]
    const client = ssh(t, platform, key, ['-R', `0:${one.address}`, '-R', `0:${two.address}`], ['tcp'])
    const answers = await Promise.all([0, 1].map(async (nth) => exchange(await dialTcp(await client.url(nth)), '')))
    assert.deepEqual(answers.sort(), ['one', 'two'])
  })

  test('a random TCP port, which ssh reports', async (t) => {
    const service = await tcpUpstream(t)
    const client = ssh(t, platform, key, ['-R', `0:${service.address}`], ['tcp', '22'])
    const address = await client.url()
    assert.equal(await exchange(await dialTcp(address), 'over tcp'), 'over tcp')
    await client.says(new RegExp(`Allocated port ${new URL(address).port} for remote forward`))
  })

  test('a chosen TCP port, with a name and without', async (t) => {
    const service = await tcpUpstream(t)
    const [one, other] = range.ports
    for (const [place, url] of [
      [`${one}`, `tcp://localhost:${one}`],
      [`localhost.localdomain:${other}`, `tcp://localhost.localdomain:${other}`],
    ] as const) {
      const client = ssh(t, platform, key, ['-R', `${place}:${service.address}`], ['tcp'])
      assert.equal(await client.url(), url)
      assert.equal(await exchange(await dialTcp(`tcp://localhost:${new URL(url).port}`), 'x'), 'x')
    }
  })

  test('TLS that is passed through', async (t) => {
    const identity = await tlsIdentity(['tls.localhost'])
    const service = await tlsUpstream(t, identity)
    const client = ssh(t, platform, key, ['-R', `tls.localhost:443:${service.address}`], ['tls'])
    const socket = await dialTls(await client.url(), { ca: identity.ca })
    assert.equal(await exchange(socket, 'ciphered'), 'ciphered')
  })

  test('labels, which edges find', async (t) => {
    const service = await httpUpstream(t)
    const client = ssh(t, platform, key, ['-R', `0:${service.address}`], ['labeled', '--label', 'app=web'])
    await client.says(/Forwarding +labels app=web/)
    const { tunnels } = (await platform.admin.get('/tunnels')) as { tunnels: { labels?: unknown }[] }
    assert.ok(tunnels.some(({ labels }) => JSON.stringify(labels) === '{"app":"web"}'))
  })

  const keys: readonly [name: string, options: string[]][] = [
    ['ed25519', ['-t', 'ed25519']],
    ['ecdsa-256', ['-t', 'ecdsa', '-b', '256']],
    ['ecdsa-384', ['-t', 'ecdsa', '-b', '384']],
    ['ecdsa-521', ['-t', 'ecdsa', '-b', '521']],
    ['rsa-3072', ['-t', 'rsa', '-b', '3072']],
  ]
  for (const [name, options] of keys) {
    test(`a key of the kind ${name} logs in`, async (t) => {
      const own = makeKey(folder, name, options)
      const { id } = await platform.admin.create('/ssh_credentials', { public_key: own.publicLine })
      const service = await httpUpstream(t)
      const client = ssh(t, platform, own, ['-R', `80:${service.address}`], ['http'])
      await client.url()
      const { tunnel_sessions } = (await platform.admin.get('/tunnel_sessions')) as {
        tunnel_sessions: { credential: { id: string }; transport: string; agent_version: string }[]
      }
      const session = tunnel_sessions.find(({ credential }) => credential.id === id)
      assert.equal(session?.transport, 'ssh')
      assert.match(session?.agent_version ?? '', /^OpenSSH_/)
    })
  }
})
