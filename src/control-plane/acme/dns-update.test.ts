import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type DnsMood, startDnsServer, type TestDnsServer } from '../../../test/support/dns-server.ts'
import type { TsigKey } from '../../lib/dns/tsig.ts'
import { type DnsUpdateOptions, dnsUpdate } from './dns-update.ts'

const key: TsigKey = { name: 'postern', algorithm: 'hmac-sha256', secret: Buffer.from('a secret of the name server') }
const record = '_acme-challenge.app.example.com'
const limits = { udpMs: [300, 600], tcpMs: 20_000 }

async function serverFor(t: TestContext, zone = 'example.com'): Promise<TestDnsServer> {
  const server = await startDnsServer({ zone, key })
  t.after(() => server.stop())
  return server
}

const recordsAt = (server: TestDnsServer, options: Partial<DnsUpdateOptions> = {}) =>
  dnsUpdate({ server, key, now: Date.now, limits: { udpMs: [20_000], tcpMs: 20_000 }, ...options })

test('sets a record in the zone that the server names, and removes only its own value', async (t) => {
  const server = await serverFor(t)
  const records = recordsAt(server)
  await records.present(record, 'one')
  await records.present(record, 'two')
  await records.present(record, 'two')
  assert.deepEqual(server.txt.get(record), ['one', 'two'])
  await records.cleanup(record, 'one')
  await records.cleanup(record, 'one')
  assert.deepEqual(server.txt.get(record), ['two'])
  assert.ok(server.asked.every((each) => each.startsWith('udp ')))
})

test('the zone may be as deep as the record itself', async (t) => {
  const server = await serverFor(t, record)
  await recordsAt(server).present(record, 'one')
  assert.deepEqual(server.txt.get(record), ['one'])
})

for (const [what, mood] of [
  ['cut short', { isTruncating: true }],
  ['lost', { isSilentOverUdp: true }],
] as const) {
  test(`responses that are ${what} over UDP are requested over TCP`, async (t) => {
    const server = await serverFor(t)
    Object.assign(server.mood, mood)
    await recordsAt(server, { limits }).present(record, 'one')
    assert.deepEqual(server.txt.get(record), ['one'])
    assert.ok(server.asked.some((each) => each.startsWith('tcp update')))
  })
}

test('an update that is too long for UDP goes over TCP at once', async (t) => {
  const label = 'a'.repeat(60)
  const zone = `${label}.${label}.example.com`
  const server = await serverFor(t, zone)
  const long = `_acme-challenge.${label}.${zone}`
  await recordsAt(server).present(long, 'v'.repeat(200))
  assert.deepEqual(server.txt.get(long), ['v'.repeat(200)])
  assert.ok(server.asked.includes(`tcp update ${zone}`))
  assert.ok(!server.asked.includes(`udp update ${zone}`))
})

const refusals: readonly [what: string, mood: Partial<DnsMood>, message: RegExp][] = [
  ['refuses', { rcode: 5 }, /`--acme-dns-server` failed: it refuses.*\(REFUSED\)/],
  ['is not in charge', { rcode: 9 }, /NOTAUTH/],
  ['fails', { rcode: 2 }, /SERVFAIL/],
  ['does not sign', { answersWith: undefined }, /it is not signed/],
  ['signs with another secret', { answersWith: { ...key, secret: Buffer.from('another') } }, /its signature is wrong/],
  ['sends a changed answer', { twist: (answer) => flipped(answer, 3) }, /its signature is wrong/],
  ['sends what is no message', { twist: (answer) => answer.subarray(0, 30) }, /cannot be read/],
]
for (const [what, mood, message] of refusals) {
  test(`a server that ${what} has failed`, async (t) => {
    const server = await serverFor(t)
    Object.assign(server.mood, mood)
    await assert.rejects(recordsAt(server).present(record, 'one'), message)
  })
}

/** With one bit changed. */
function flipped(answer: Buffer, at: number): Buffer {
  const changed = Buffer.from(answer)
  changed[at] = (changed[at] ?? 0) ^ 0x80
  return changed
}

test('responses to other questions are ignored', async (t) => {
  const server = await serverFor(t)
  server.mood.twist = (answer) => flipped(answer, 0)
  const short = { udpMs: [200], tcpMs: 200 }
  await assert.rejects(recordsAt(server, { limits: short }).present(record, 'one'), /cannot be reached/)
})

test('an unknown key and an unknown zone are reported', async (t) => {
  const server = await serverFor(t)
  const unknown = recordsAt(server, { key: { ...key, secret: Buffer.from('wrong') } })
  await assert.rejects(unknown.present(record, 'one'), /refuses the key \(NOTAUTH\)/)
  await assert.rejects(recordsAt(server).present('_acme-challenge.example.org', 'one'), /REFUSED/)
  assert.equal(server.txt.size, 0)
})

test('a server that accepts connections but stays silent is given up', async (t) => {
  const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as { port: number }
  t.after(() => silent.close())
  const records = dnsUpdate({
    server: { host: '127.0.0.1', port },
    key,
    now: Date.now,
    limits: { udpMs: [50], tcpMs: 200 },
  })
  await assert.rejects(records.present(record, 'one'), /cannot be reached: no answer within 0.2 seconds/)
})

test('it waits for the other name servers of the zone, but not for an unreachable one', async (t) => {
  const [server, second] = [await serverFor(t), await serverFor(t)]
  server.mood.nameServers = ['ns1.example.com', 'ns2.example.com', 'away.example.com']
  const addresses: Record<string, readonly TestDnsServer[]> = {
    'ns1.example.com': [server],
    'ns2.example.com': [second],
  }
  let isSet = false
  const addressesOf = async (name: string) => addresses[name] ?? []
  const set = recordsAt(server, { addressesOf })
    .present(record, 'one')
    .then(() => {
      isSet = true
    })
  while (!second.asked.some((each) => each === `udp look ${record}`)) await new Promise((next) => setTimeout(next, 10))
  assert.equal(isSet, false)
  second.txt.set(record, ['one'])
  await set
  assert.ok(server.asked.includes(`udp look ${record}`))
})
