import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { DialFault } from '../../model/dial.ts'
import type { DialTarget, FixedTarget, Visit } from './dial.ts'
import { dialCode, dialFirst, dialTarget } from './dial.ts'

const visit: Visit = { ip: '192.0.2.7', port: 50_000, proto: 'tcp', edge: 'tcp', passthroughTls: false }
const ends = { ip: '192.0.2.7', port: 50_000, serverIp: '198.51.100.1', serverPort: 20_001 }

function target(
  key: string,
  fault?: DialFault['reason'],
  proxyHeader: 0 | 1 | 2 = 0,
): DialTarget & { readonly visits: Visit[]; readonly written: Buffer[] } {
  const [visits, written]: [Visit[], Buffer[]] = [[], []]
  const stream = { write: (bytes: Buffer) => written.push(bytes) } as unknown as ByteStream // all that is used of it
  return {
    kind: 'dial',
    key,
    httpVersion: 1,
    proxyHeader,
    visits,
    written,
    open: async (visit) => {
      visits.push(visit)
      return fault ? new DialFault(fault, 'no') : stream
    },
  }
}

const fixed: FixedTarget = { kind: 'fixed', status: 200, headers: [], body: Buffer.alloc(0) }

describe('a target that is dialled', () => {
  test("gets the visit, and no bytes before the visitor's", async () => {
    const plain = target('a')
    assert.ok(!((await dialTarget(plain, visit, ends)) instanceof DialFault))
    assert.deepEqual([plain.visits, plain.written], [[visit], []])
  })

  test('gets the PROXY header it wants before anything else', async () => {
    const dialled = target('a', undefined, 1)
    await dialTarget(dialled, visit, ends)
    assert.equal(Buffer.concat(dialled.written).toString(), 'PROXY TCP4 192.0.2.7 198.51.100.1 50000 20001\r\n')
  })

  test('is sent nothing when it cannot be dialled', async () => {
    const away = target('a', 'refused', 2)
    assert.ok((await dialTarget(away, visit, ends)) instanceof DialFault)
    assert.deepEqual(away.written, [])
  })
})

describe('the first target that can be dialled', () => {
  const first = (...targets: (DialTarget | FixedTarget)[]) =>
    dialFirst({ targets, visit, ends, offline: 'BACKEND_OFFLINE' })

  test('is used, and later ones are not dialled', async () => {
    const [away, there, spare] = [target('a', 'offline'), target('b'), target('c')]
    const dialled = await first(away, there, spare)
    assert.ok(typeof dialled !== 'string')
    assert.deepEqual([dialled.key, away.visits.length, spare.visits.length], ['b', 1, 0])
  })

  test('is never a fixed response, which carries no bytes (R-2.3)', async () => {
    assert.equal(await first(fixed), 'BACKEND_OFFLINE')
  })

  for (const [name, reasons, code] of [
    ['no target', [], 'BACKEND_OFFLINE'],
    ['one that is offline', ['offline'], 'BACKEND_OFFLINE'],
    ['a busy one before one that is offline', ['busy', 'offline'], 'BACKEND_BUSY'],
    ['a busy one after one that is offline', ['offline', 'busy'], 'BACKEND_BUSY'],
    ['one at a node that cannot be reached', ['unreachable', 'offline'], 'NODE_UNREACHABLE'],
    ['the last of several that are online', ['busy', 'timeout', 'refused'], 'UPSTREAM_UNREACHABLE'],
  ] as const) {
    test(`does not exist after ${name}: ${code}`, async () => {
      assert.equal(await first(...reasons.map((reason) => target('x', reason))), code)
    })
  }

  test('an offline target alone has no code of its own', () => {
    assert.equal(dialCode(new DialFault('offline', '')), undefined)
  })
})
