/** What every TLS listener accepts: modern cipher suites, no renegotiation, and for agents the minimum TLS version. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type ConnectionOptions, connect, type SecureVersion, type TLSSocket } from 'node:tls'
import { makeIdentity } from '../support/make-certificate.ts'
import { startPlatform } from '../support/platform.ts'
import { listener } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

const OLD_NAME = 'old.edge.test'
const RSA_NAME = 'rsa.edge.test'
const TLS_NAME = 'tls.edge.test'
const DAY = 86_400_000

let world: World
const listeners: Record<string, () => ConnectionOptions> = {
  agents: () => ({ port: portOf(world.platform.agents) }),
  'an HTTPS edge with an uploaded RSA certificate': () => ({ port: world.platform.httpsPort, servername: RSA_NAME }),
  'a TLS edge with an uploaded RSA certificate': () => ({ port: world.platform.httpsPort, servername: TLS_NAME }),
  'a name that is not served': () => ({ port: world.platform.httpsPort, servername: 'nobody.edge.test' }),
}
const oldListener = (): ConnectionOptions => ({ port: world.platform.httpsPort, servername: OLD_NAME })

before(async () => {
  world = await World.start()
  const dnsNames = [RSA_NAME, TLS_NAME, OLD_NAME]
  const valid = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + DAY) }
  const { certificatePem, privateKeyPem } = await makeIdentity({ dnsNames, key: 'rsa2048', ...valid })
  await world.api.create('/tls_certificates', { certificate_pem: certificatePem, private_key_pem: privateKeyPem })
  await world.httpsEdge({ names: [RSA_NAME] })
  const silent = await listener(world, () => {})
  await world.tlsEdge({ backend: await world.toAddress(silent), tls_termination: {} }, [TLS_NAME])
  await world.httpsEdge({ names: [OLD_NAME], modules: { tls_termination: { min_version: '1.0' } } })
})
after(() => world.stop())

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}

/** A connection, or an error message. */
async function shake(options: ConnectionOptions): Promise<TLSSocket | string> {
  const socket = connect({ host: '127.0.0.1', rejectUnauthorized: false, ...options })
  const outcome = await Promise.race([
    once(socket, 'secureConnect').then(() => socket),
    new Promise<string>((resolve) => socket.on('error', (error) => resolve(String(error)))),
  ])
  if (typeof outcome === 'string') socket.destroy()
  return outcome
}

async function agreed(options: ConnectionOptions): Promise<string> {
  const outcome = await shake(options)
  if (typeof outcome === 'string') return outcome
  const cipher = outcome.getCipher().name
  outcome.destroy()
  return cipher
}

const only = (version: SecureVersion): ConnectionOptions => ({ minVersion: version, maxVersion: version })

/** Cipher suites with CBC, RSA key exchange, both, and old ephemeral keys. */
const weak = [
  'ECDHE-ECDSA-AES128-SHA256',
  'ECDHE-RSA-AES128-SHA256',
  'ECDHE-ECDSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA',
  'ECDHE-RSA-AES256-SHA384',
  'AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-SHA256',
  'AES256-SHA',
  'DHE-RSA-AES128-GCM-SHA256',
  'DHE-RSA-AES256-SHA256',
]
const strong = /^ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305)$/

for (const [what, listenerName] of Object.entries(listeners)) {
  describe(`at the door for ${what}`, () => {
    for (const cipher of weak) {
      test(`${cipher} is refused`, async () => {
        const outcome = await agreed({ ...listenerName(), ...only('TLSv1.2'), ciphers: `${cipher}:@SECLEVEL=0` })
        assert.match(outcome, /handshake failure|no shared cipher/i)
      })
    }

    test('a client that offers everything over TLS 1.2 gets ECDHE and AEAD', async () => {
      assert.match(await agreed({ ...listenerName(), ...only('TLSv1.2'), ciphers: 'ALL:@SECLEVEL=0' }), strong)
    })

    test('TLS 1.3 is supported', async () => {
      assert.match(await agreed({ ...listenerName(), ...only('TLSv1.3') }), /^TLS_/)
    })

    test('TLS 1.2 cannot be renegotiated', async (t) => {
      const socket = await shake({ ...listenerName(), ...only('TLSv1.2') })
      if (typeof socket === 'string') assert.fail(socket)
      t.after(() => socket.destroy())
      socket.resume()
      const outcome = await new Promise<string>((resolve) => {
        socket.on('error', (error) => resolve(String(error)))
        socket.on('close', () => resolve('closed'))
        socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error ? String(error) : 'renegotiated'))
      })
      assert.notEqual(outcome, 'renegotiated')
    })
  })
}

describe('an edge that allows TLS 1.0', () => {
  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    test(`speaks ${version} with forward secrecy, and not with RSA key exchange`, async () => {
      const everything = { ...oldListener(), ...only(version), ciphers: 'ALL:@SECLEVEL=0' }
      assert.match(await agreed(everything), /^ECDHE-RSA-AES(128|256)-SHA$/)
      assert.match(await agreed({ ...everything, ciphers: 'AES128-SHA:AES256-SHA:@SECLEVEL=0' }), /handshake failure/i)
    })
  }

  test('gives clients that support it a modern suite', async () => {
    assert.match(await agreed({ ...oldListener(), ...only('TLSv1.2'), ciphers: 'ALL:@SECLEVEL=0' }), strong)
  })
})

test('with --tls-min-version 1.3 agents must speak TLS 1.3', async (t) => {
  const platform = await startPlatform({ flags: { 'tls-min-version': '1.3' } })
  t.after(() => platform.stop())
  const listenerName = { port: portOf(platform.agents) }
  assert.match(await agreed({ ...listenerName, ...only('TLSv1.2') }), /protocol version/i)
  assert.match(await agreed({ ...listenerName, ...only('TLSv1.3') }), /^TLS_/)
})
