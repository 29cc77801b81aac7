/** What is specific to dropbear: its forms of a forward, its kinds of keys, and how it shows a refusal. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { TestGateway } from '../../../src/data-plane/ssh/testing/test-gateway.ts'
import { readSshPublicKey } from '../../../src/lib/ssh-keys/ssh-public-key.ts'
import { type TcpRange, tcpRange } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import { dbclient, makeKey, missing } from './dropbear.ts'
import { type Key, keyFolder } from './openssh.ts'

describe('dropbear', { skip: missing }, () => {
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

  const forms: readonly [place: string, command: string[], url: RegExp][] = [
    ['80', ['http'], /^http:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost/],
    ['443', ['http'], /^https:\/\//],
    ['drop.localhost:443', ['http'], /^https:\/\/drop\.localhost/],
    ['443', ['http', '--domain', 'flag.localhost'], /^https:\/\/flag\.localhost/],
  ]
  for (const [place, command, url] of forms) {
    test(`-R ${place}:… ${command.join(' ')}`, async (t) => {
      const service = await httpUpstream(t)
      const client = dbclient(t, platform, key, ['-R', `${place}:${service.address}`], command)
      const address = await client.url()
      assert.match(address, url)
      const { status, text } = await visit(address, platform, { path: '/hello' })
      assert.equal(status, 200)
      assert.match(text, /\/hello/)
    })
  }

  test('a chosen TCP port', async (t) => {
    const service = await tcpUpstream(t)
    const url = `tcp://localhost:${range.from}`
    const client = dbclient(t, platform, key, ['-R', `${range.from}:${service.address}`], ['tcp'])
    assert.equal(await client.url(), url)
    assert.equal(await exchange(await dialTcp(url), 'x'), 'x')
  })

  for (const [kind, options] of [
    ['ecdsa', ['-t', 'ecdsa', '-s', '256']],
    ['rsa', ['-t', 'rsa', '-s', '2048']],
  ] as const) {
    test(`a key of the kind ${kind} logs in, and the session names the client`, async (t) => {
      const own = makeKey(folder, kind, options)
      const { id } = await platform.admin.create('/ssh_credentials', { public_key: own.publicLine })
      const service = await httpUpstream(t)
      const client = dbclient(t, platform, own, ['-R', `80:${service.address}`], ['http'])
      await client.url()
      const { tunnel_sessions } = (await platform.admin.get('/tunnel_sessions')) as {
        tunnel_sessions: { credential: { id: string }; agent_version: string }[]
      }
      const session = tunnel_sessions.find(({ credential }) => credential.id === id)
      assert.match(session?.agent_version ?? '', /^dropbear_/)
    })
  }

  test('a client with keep-alives stays', async (t) => {
    const sockets: Socket[] = []
    const gateway = new TestGateway({
      meet: (socket, peer, then) => {
        sockets.push(socket)
        then(peer)
      },
    })
    await gateway.listen()
    t.after(() => gateway.close())
    const { fingerprint } = readSshPublicKey(key.publicLine)
    gateway.credentials.set(fingerprint, { id: 'sshcr_kept', acl: [] })
    const forward = ['-K', '1', '-R', 'kept.example.test:443:localhost:1']
    // Once its input has ended, dropbear asks about the connection instead of the terminal.
    const client = dbclient(t, { sshPort: gateway.port }, key, forward, ['http'], { isInputOpen: true })
    await client.url()
    const [socket] = sockets
    assert.ok(socket)
    let keepAlives = 0
    socket.on('data', () => keepAlives++)
    // After three without an answer it gives up.
    while (keepAlives < 6 && !socket.destroyed) await Promise.race([once(socket, 'data'), client.ended])
    assert.equal(gateway.endpoints.addresses.length, 1, client.err())
  })

  test('an unknown key is refused with a message', async (t) => {
    const stranger = makeKey(folder, 'stranger')
    const client = dbclient(t, platform, stranger, ['-R', '80:localhost:1'], ['http'])
    assert.notEqual(await client.ended, 0)
    assert.match(client.err(), /No SSH credential has the key SHA256:.*ERR_NGROK_1102/)
  })

  test('an invalid command is refused on stderr, with exit status 1', async (t) => {
    const client = dbclient(t, platform, key, ['-R', '80:localhost:1'], ['bash'])
    assert.equal(await client.ended, 1)
    assert.match(client.err(), /`bash` is not a command.*ERR_NGROK_1108/)
  })
})
