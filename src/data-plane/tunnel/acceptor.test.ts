import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { streamTypes, typeHead } from '../../link/wire/stream-types.ts'
import { UNAUTHENTICATED_BYTES } from '../../link/wire/wire-bounds.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import {
  ok,
  refusedWith,
  TestAgentListener,
  type TestAgentListenerOptions,
  until,
} from './testing/test-agent-listener.ts'

const identity = await makeIdentity({ name: 'CN=first' })

async function startTestListener(options?: TestAgentListenerOptions): Promise<TestAgentListener> {
  const listener = await new TestAgentListener(identity, options).listen()
  after(() => listener.close())
  return listener
}

function dial(listener: TestAgentListener): Socket {
  const socket = connectTcp({ port: listener.port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.resume()
  return socket
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
  })
}

describe('the listener', () => {
  test('speaks TLS 1.2 and 1.3, no older, and offers no ALPN', async () => {
    const listener = await startTestListener()
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { minVersion: version, maxVersion: version, rejectUnauthorized: false, ALPNProtocols: ['h2'] }
      const socket = connectTls({ port: listener.port, host: '127.0.0.1', ...options })
      await once(socket, 'secureConnect')
      assert.equal(socket.getProtocol(), version)
      assert.equal(socket.alpnProtocol, false)
      socket.destroy()
    }
    const options = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', rejectUnauthorized: false } as const
    const old = connectTls({ port: listener.port, host: '127.0.0.1', ciphers: 'DEFAULT@SECLEVEL=0', ...options })
    const [error] = await once(old, 'error')
    assert.match(String(error), /protocol version|unsupported/i)
  })

  test('prefers the faster cipher, and accepts another from a client that does not offer it', async () => {
    const listener = await startTestListener()
    const offers = { 'TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256': 128, TLS_AES_256_GCM_SHA384: 256 }
    for (const [ciphers, bits] of Object.entries(offers)) {
      const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false, ciphers })
      await once(socket, 'secureConnect')
      assert.match(socket.getCipher().standardName, new RegExp(`^TLS_AES_${bits}_GCM`))
      socket.destroy()
    }
  })

  test('uses another certificate from the next connection on, and keeps open connections', async () => {
    const listener = await startTestListener()
    const { agent } = await listener.online()
    const { certificatePem: cert, privateKeyPem: key } = await makeIdentity({ name: 'CN=second' })
    listener.listener.useCertificate({ cert, key }, 'TLSv1.2')
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    assert.equal(socket.getPeerX509Certificate()?.subject, 'CN=second')
    socket.destroy()
    ok(await agent.bind())
  })

  test('fails to listen when its port is taken', async () => {
    const listener = await startTestListener()
    await assert.rejects(new TestAgentListener(identity).listen(listener.port), { code: 'EADDRINUSE' })
  })
})

describe('before it has authenticated, a connection', () => {
  const slow = { limits: { authenticationMs: 100 } }

  test('that never begins TLS is closed when its time is over', async () => {
    const listener = await startTestListener(slow)
    await closed(dial(listener))
    await until(() => listener.load.unproven === 0)
    assert.deepEqual(
      listener.logLines('agent connection refused').map(({ reason }) => reason),
      ['it took too long to authenticate'],
    )
  })

  test('that stops within the TLS handshake is closed when its time is over', async () => {
    const listener = await startTestListener(slow)
    const socket = dial(listener)
    // The first bytes of a ClientHello.
    socket.write(Buffer.from('16030102000100', 'hex'))
    await closed(socket)
    await until(() => listener.load.unproven === 0)
  })

  test('that sends nothing after TLS is closed when its time is over', async () => {
    const listener = await startTestListener(slow)
    await listener.agent().closed
    assert.equal(listener.logLines('agent connection refused').length, 1)
  })

  test('that never completes its authentication is closed when its time is over', async () => {
    const listener = await startTestListener(slow)
    const agent = listener.agent()
    agent.mux.open(Buffer.concat([typeHead(streamTypes.auth), Buffer.from('{"Version":')]))
    await agent.closed
    assert.equal(listener.logLines('agent connection refused').length, 1)
  })

  test('may send little, and is logged once however much it sends', async () => {
    const listener = await startTestListener()
    const agent = listener.agent({ isAlive: false })
    const stream = agent.mux.open(typeHead(streamTypes.heartbeat))
    if (stream instanceof WireError) assert.fail(stream)
    stream.write(Buffer.alloc(UNAUTHENTICATED_BYTES))
    const error = await agent.closed
    assert.match(error?.message ?? '', /before it was authenticated/)
    await until(() => listener.load.unproven === 0)
    assert.equal(listener.logLines('agent connection refused').length, 1)
  })

  for (const [what, bytes] of [
    ['plain HTTP', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['noise', Buffer.alloc(100_000, 0xa5)],
  ] as const) {
    test(`that sends ${what} is closed and logged once`, async () => {
      const listener = await startTestListener()
      const socket = dial(listener)
      socket.write(bytes)
      await closed(socket)
      await until(() => listener.load.unproven === 0)
      assert.equal(listener.logLines('agent connection refused').length, 1)
    })
  }

  test('that breaks the framing inside TLS is closed and logged once', async () => {
    const listener = await startTestListener()
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false })
    socket.on('error', () => {})
    socket.resume()
    // WNDINC of zero on stream 0, over and over.
    socket.write(Buffer.alloc(1200, Buffer.from('000004200000000000000000', 'hex')))
    await closed(socket)
    await until(() => listener.load.unproven === 0)
    assert.equal(listener.logLines('agent connection refused').length, 1)
  })
})

describe('a crowd', () => {
  test('of connections from one address makes room for newer ones, is logged once, and keeps no agent out', async () => {
    const listener = await startTestListener({ limits: { unprovenPerIp: 3 } })
    const crowd = Array.from({ length: 23 }, () => dial(listener))
    await Promise.all(crowd.slice(0, 10).map(closed))
    assert.equal(listener.logLines('unauthenticated agent connections dropped to make room for newer ones').length, 1)
    await listener.online()
    await until(() => crowd.filter((socket) => !socket.closed).length <= 3)
    for (const socket of crowd) socket.destroy()
    await until(() => listener.load.unproven === 0)
  })

  test('of authenticated agents does not count', async () => {
    const listener = await startTestListener({ limits: { unprovenPerIp: 1, unproven: 1 } })
    for (let i = 0; i < 5; i++) {
      await listener.online()
      assert.equal(listener.load.unproven, 0)
    }
    assert.equal(listener.load.sessions, 5)
  })

  test('of failed authentications is answered late and logged once, and a valid token gets in meanwhile', async () => {
    const listener = await startTestListener({ limits: { failuresPerMinute: 3, lateRefusalMs: 3_600_000 } })
    for (let i = 0; i < 3; i++) {
      const agent = listener.agent()
      assert.equal(refusedWith(await agent.authenticate({ versions: ['1'] })), 811)
      await agent.leave()
    }
    const late = listener.agent()
    let answered = false
    const answer = late.authenticate({ versions: ['1'] }).then(
      () => {
        answered = true
      },
      () => {},
    )
    await until(() => listener.logLines('agent logins keep failing').length === 1)
    await listener.online()
    assert.equal(answered, false)
    assert.equal(listener.logLines('agent connection refused').length, 3)
    await late.leave()
    await answer
  })
})
