import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { makeSshHostKey } from '../../lib/ssh-keys/ssh-host-key.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { Refusal } from '../../model/errors.ts'
import { until } from '../tunnel/testing/test-agent-listener.ts'
import { listed } from '../tunnel/testing/test-control.ts'
import { assertPrinted, clientKey, gatewayStarter, serving, theSession } from './testing/test-gateway.ts'

const start = gatewayStarter()

// Logins

test('a client with the key of a credential is online under it', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  const { present } = theSession(gateway)
  assert.deepEqual([present.transport, present.credentialId, present.ip], ['ssh', 'sshcr_test', '127.0.0.1'])
  assert.match(present.agentVersion, /^ssh2js/)
  await client.leave()
  await until(() => gateway.online.registry.liveSessions().length === 0)
  assert.deepEqual(gateway.endpoints.addresses, [])
})

test('an unknown key is refused, and the client is told so', async () => {
  const gateway = await start()
  const client = gateway.client()
  let banner = ''
  client.ssh.on('banner', (text: string) => {
    banner = text
  })
  const { privateText, publicLine } = makeSshHostKey()
  await assert.rejects(client.login({ privateKey: privateText }), /authentication methods failed/)
  assert.ok(banner.includes(readSshPublicKey(publicLine).fingerprint) && banner.includes('ERR_NGROK_1102'), banner)
})

test('a client that offers a credential’s key without holding it is refused', async () => {
  const gateway = await start()
  const [, base64 = ''] = /-----\n([\s\S]*)\n-----/.exec(clientKey.privateText) ?? []
  const file = Buffer.from(base64, 'base64')
  const point = readSshPublicKey(clientKey.publicLine).blob.subarray(-32)
  // The private part stands before the last copy of the public one.
  const at = file.lastIndexOf(point) - 32
  file.set(Buffer.alloc(32, 7), at)
  const forged = `-----BEGIN OPENSSH PRIVATE KEY-----\n${file.toString('base64')}\n-----END OPENSSH PRIVATE KEY-----\n`
  await assert.rejects(gateway.client().login({ privateKey: forged }), /authentication methods failed/)
  assert.deepEqual(gateway.online.registry.liveSessions(), [])
})

test('passwords are refused', async () => {
  const gateway = await start()
  const options = { password: 'x', authHandler: ['password', 'keyboard-interactive'], tryKeyboard: true }
  await assert.rejects(gateway.client().login(options), /authentication methods failed/)
})

test('after six failures the connection ends, with the reason', async () => {
  const gateway = await start()
  const client = gateway.client()
  const wrong = Array.from({ length: 10 }, () => {
    return { type: 'publickey', username: 'v2', key: makeSshHostKey().privateText }
  })
  await assert.rejects(client.login({ authHandler: wrong }), /6 logins failed.*ERR_NGROK_1101/)
  assert.equal(gateway.listener.metrics.failures, 1)
})

test('a client that leaves after its key was refused has failed', async () => {
  const gateway = await start()
  await assert.rejects(gateway.client().login({ privateKey: makeSshHostKey().privateText }))
  await until(() => gateway.listener.metrics.failures === 1)
  assert.ok(gateway.logged.some(({ msg, level }) => msg === 'agent connection refused' && level === 'info'))
})

test('a client whose second key is the right one has not', async () => {
  const gateway = await start()
  const keys = [makeSshHostKey(), clientKey].map(({ privateText: key }) => ({ type: 'publickey', username: 'v2', key }))
  const client = await gateway.client().login({ authHandler: keys })
  await client.leave()
  assert.equal(gateway.listener.metrics.failures, 0)
})

test('the client is told that the database is unavailable, and does not count as failed', async () => {
  const gateway = await start()
  gateway.isAway = true
  await assert.rejects(gateway.client().login(), /ERR_NGROK_802/)
  assert.equal(gateway.listener.metrics.failures, 0)
})

test('a connection that says nothing is closed when its time is over', async () => {
  const gateway = await start({ limits: { authenticationMs: 50 } })
  const socket = connect(gateway.port, '127.0.0.1')
  socket.resume()
  await once(socket, 'close')
  await until(() => gateway.listener.metrics.unproven === 0)
})

test('silent connections make room for clients that can log in', async () => {
  const gateway = await start({ limits: { unproven: 20, unprovenPerIp: 20 } })
  const silent = Array.from({ length: 60 }, () => connect(gateway.port, '127.0.0.1').on('error', () => {}))
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  const { client } = await serving(gateway)
  await client.leave()
  for (const socket of silent) socket.destroy()
})

test('a connection from an address that the IP restriction does not admit is closed without a byte', async () => {
  const gateway = await start({ admits: () => false })
  const socket = connect(gateway.port, '127.0.0.1').on('error', () => {})
  let heard = 0
  socket.on('data', (chunk) => {
    heard += chunk.length
  })
  await once(socket, 'close')
  assert.equal(heard, 0)
})

const offers: readonly [what: string, algorithms: Record<string, string[]>][] = [
  ['a key exchange with SHA-1', { kex: ['diffie-hellman-group14-sha1'] }],
  ['CBC', { cipher: ['aes128-cbc'] }],
  ['a MAC with SHA-1', { cipher: ['aes128-ctr'], hmac: ['hmac-sha1'] }],
  ['compression', { compress: ['zlib@openssh.com'] }],
  ['a host key of another kind', { serverHostKey: ['ssh-rsa'] }],
]
for (const [what, algorithms] of offers) {
  test(`${what} is not supported`, async () => {
    const gateway = await start()
    await assert.rejects(gateway.client().login({ algorithms }), /no matching/)
  })
}

// Commands and forwards

test('forward and command may come in either order, and several forwards share a command', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  const run = await client.exec('http')
  assert.equal(await client.forward('a.example.test', 443), 443)
  assert.equal(await client.forward('b.example.test', 80), 80)
  assert.deepEqual(gateway.endpoints.addresses, ['https://a.example.test', 'http://b.example.test'])
  await until(() => run.out.includes('http://b.example.test'))
  assert.match(run.out, /^Forwarding {2}https:\/\/a\.example\.test$/m)
})

test('forwards of port 0 get a port each, and for TCP the real one', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  await client.exec('http')
  const ports = await Promise.all([client.forward('', 0), client.forward('localhost', 0)])
  assert.equal(new Set(ports).size, 2)
  const tcp = await serving(gateway, { address: 'localhost', port: 0, command: 'tcp' })
  assert.ok(gateway.endpoints.addresses.includes(`tcp://example.test:${tcp.port}`))
})

test('a forward that is cancelled gives its address back', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  await client.forward('b.example.test', 443)
  await client.cancel('app.example.test', 443)
  await until(() => gateway.endpoints.addresses.length === 1)
  assert.deepEqual(gateway.endpoints.addresses, ['https://b.example.test'])
})

test('a labelled tunnel is found by its labels', async () => {
  const gateway = await start()
  await serving(gateway, { address: 'localhost', port: 0, command: 'labeled --label a=b' })
  assert.equal((await listed(gateway.online.registry).tunnelsWith({ a: 'b' })).length, 1)
})

const refusals: readonly [
  what: string,
  command: string,
  forwardAddress: [string, number],
  acl: string[],
  ngrok: number,
][] = [
  ['a name that the ACL does not allow', 'http', ['x.example.test', 443], ['bind:y.example.test'], 316],
  ['a random name under a narrow ACL', 'http', ['localhost', 443], ['bind:y.example.test'], 316],
  ['a TCP address that the ACL does not allow', 'tcp', ['localhost', 20_001], ['bind:y.example.test'], 308],
  ['a random TCP port under a narrow ACL', 'tcp', ['localhost', 0], ['bind:*.example.test'], 356],
  ['a label that the ACL does not allow', 'labeled --label a=b', ['localhost', 0], ['bind:a=c'], 399],
  ['a port outside of the range', 'tcp', ['localhost', 5000], [], 307],
  ['another port for http', 'http', ['localhost', 8080], [], 1113],
  ['a flag that is none', 'http --nonsense', ['localhost', 443], [], 1109],
  ['another program', 'rm -rf /', ['localhost', 443], [], 1108],
]
for (const [what, command, [address, port], acl, ngrok] of refusals) {
  test(`${what} is refused on the channel, and the connection ends`, async () => {
    const gateway = await start()
    gateway.admit(acl)
    const client = await gateway.client().login()
    const forward = client.forward(address, port).catch(() => 'refused')
    const run = await client.exec(command)
    assertPrinted(await run.printed, ngrok)
    await client.closed
    assert.notEqual(await forward, port)
    assert.deepEqual(gateway.endpoints.addresses, [])
  })
}

test('each forward is checked against the current ACL', async () => {
  const gateway = await start()
  const { client, run } = await serving(gateway)
  gateway.admit(['bind:app.example.test'])
  await assert.rejects(client.forward('other.example.test', 443))
  assertPrinted(await run.printed, 316)
})

test('an old version of the syntax is refused', async () => {
  const gateway = await start()
  const client = await gateway.client().login({ username: 'v1' })
  assertPrinted(await (await client.exec('http')).printed, 1106)
})

test('a second command is refused, and the first goes on', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  assertPrinted(await (await client.exec('http')).printed, 1104)
  assert.deepEqual(gateway.endpoints.addresses, ['https://app.example.test'])
})

test('the same forward twice is refused', async () => {
  const gateway = await start()
  const { client, run } = await serving(gateway)
  await assert.rejects(client.forward('app.example.test', 443))
  assertPrinted(await run.printed, 1105)
})

test('a client that requests nothing is disconnected with the reason', async () => {
  const gateway = await start({ limits: { requestMs: 50 } })
  const client = await gateway.client().login()
  await client.closed
  assert.equal(gateway.logged.filter(({ reason }) => String(reason).includes('ERR_NGROK_1111')).length, 1)
})

test('a client that forwards nothing is told so', async () => {
  const gateway = await start({ limits: { requestMs: 200 } })
  const client = await gateway.client().login()
  assertPrinted(await (await client.exec('http')).printed, 1112)
})

test('-L and -D are refused, and the tunnel goes on', async () => {
  const gateway = await start()
  const { client, run } = await serving(gateway)
  const error = await new Promise<Error | undefined>((resolve) => client.ssh.forwardOut('a', 1, 'b', 2, resolve))
  assert.ok(error)
  await until(() => run.err.includes('use `-R`'))
  assert.equal(gateway.endpoints.addresses.length, 1)
})

test('a command that cannot be read leaves no password in the log', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  assertPrinted(await (await client.exec('http --basic-auth user: hunter2')).printed, 1110)
  assert.ok(!JSON.stringify(gateway.logged).includes('hunter2'))
})

test('on a terminal a screen is drawn, and Ctrl+C ends it', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  await Promise.all([client.forward('app.example.test', 443), client.exec('http', { pty: true })]).then(
    async ([, run]) => {
      await until(() => /Forwarding +https:\/\/app\.example\.test/.test(run.out))
      run.channel.write('\x03')
      assert.equal((await run.printed).status, 0)
    },
  )
  await client.closed
  assert.deepEqual(gateway.endpoints.addresses, [])
})

test('the screen shows how long a keep-alive takes, and the requests to the tunnel', async () => {
  const gateway = await start()
  const client = await gateway.client().login()
  const [, run] = await Promise.all([client.forward('app.example.test', 443), client.exec('http', { pty: true })])
  await until(() => /Latency +[\d.]+ ms/.test(run.out))
  const [tunnel] = theSession(gateway).tunnels.values()
  const request = { method: 'GET', path: '/there', status: 204, durationMs: 5 }
  gateway.online.requests.saw({ ...request, edge: tunnel?.endpoint?.id })
  await until(() => /204 +5\.0 ms +GET +\/there/.test(run.out))
})

// Presence and commands of the API

test('stop ends the connection; restart and update are refused', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  const session = theSession(gateway)
  for (const command of ['restart', 'update'] as const) {
    await assert.rejects(
      session.command(command),
      (error) => error instanceof Refusal && error.code === 'SSH_COMMAND_UNSUPPORTED',
    )
  }
  await session.command('stop')
  await client.closed
  assert.deepEqual(gateway.endpoints.addresses, [])
})

test('a deleted credential ends its sessions', async () => {
  const gateway = await start()
  const { client } = await serving(gateway)
  for (const session of gateway.online.registry.liveSessions()) session.end('its credential was deleted')
  await client.closed
})

test('the client is told when the server stops a tunnel', async () => {
  const gateway = await start()
  const { run } = await serving(gateway)
  const [tunnel] = theSession(gateway).tunnels.values()
  assert.ok(gateway.online.stopTunnel(tunnel?.id ?? '', { message: 'an edge has its name', ngrok: 381 }))
  assertPrinted(await run.printed, 381)
})

test('a client that vanished loses its name to the next that asks for it', async () => {
  const gateway = await start({ limits: { signOfLifeMs: 100 } })
  const { client } = await serving(gateway)
  client.ssh._sock.pause()
  const next = await serving(gateway)
  assert.equal(next.port, 443)
  assert.equal(gateway.online.registry.liveSessions().length, 1)
  client.ssh._sock.destroy()
})

test('a client that answers no keep-alive goes offline', async () => {
  const gateway = await start({ limits: { keepAliveMs: 20, missedKeepAlives: 3 } })
  const { client } = await serving(gateway)
  client.ssh._sock.pause()
  await until(() => gateway.online.registry.liveSessions().length === 0)
  client.ssh._sock.destroy()
})
