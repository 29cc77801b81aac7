import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { binaryHead, closeFrame, FrameReader, pongFrame } from './frames.ts'
import { clientFrame } from './testing/test-client.ts'

type Event = ['data', string] | ['ping', string] | ['close']

/** The events of reading some bytes; data that comes in pieces is one event. */
function read(bytes: Buffer, cuts: readonly number[] = []): { events: Event[]; fault: number | undefined } {
  const events: Event[] = []
  const reader = new FrameReader({
    data(piece) {
      const last = events.at(-1)
      if (last?.[0] === 'data') last[1] += piece.toString('latin1')
      else events.push(['data', piece.toString('latin1')])
    },
    ping: (payload) => void events.push(['ping', payload.toString('latin1')]),
    close: () => void events.push(['close']),
  })
  let at = 0
  for (const cut of [...cuts.map((each) => each % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    const fault = reader.read(bytes.subarray(at, cut))
    if (fault !== undefined) return { events, fault }
    at = cut
  }
  return { events, fault: undefined }
}

test('reads the examples of RFC 6455 §5.7', () => {
  const hello = Buffer.from('818537fa213d7f9f4d5158', 'hex')
  assert.deepEqual(read(hello), { events: [['data', 'Hello']], fault: undefined })
  const ping = Buffer.from('898537fa213d7f9f4d5158', 'hex')
  assert.deepEqual(read(ping), { events: [['ping', 'Hello']], fault: undefined })
})

const piece = fc.record({
  size: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constantFrom(125, 126, 65_535, 65_536, 70_001)),
  kind: fc.constantFrom('text', 'binary', 'ping', 'pong'),
  parts: fc.integer({ min: 1, max: 4 }),
})

test('reads whatever clients send, in chunks of any size', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 12 }), (pieces, cuts) => {
      const wire: Buffer[] = []
      const expected: Event[] = []
      const expect = (payload: Buffer): void => {
        const last = expected.at(-1)
        if (last?.[0] === 'data') last[1] += payload.toString('latin1')
        else if (payload.length > 0) expected.push(['data', payload.toString('latin1')])
      }
      for (const { size, kind, parts } of pieces) {
        if (kind === 'ping' || kind === 'pong') {
          const payload = randomBytes(size % 126)
          wire.push(clientFrame(kind, payload))
          if (kind === 'ping') expected.push(['ping', payload.toString('latin1')])
          continue
        }
        for (let i = 0; i < parts; i++) {
          const payload = randomBytes(size)
          wire.push(clientFrame(i === 0 ? kind : 'continuation', payload, { isFinal: i === parts - 1 }))
          expect(payload)
          // Control frames may come between the parts of a message.
          wire.push(clientFrame('pong', Buffer.from('x')))
        }
      }
      wire.push(clientFrame('close', Buffer.from([0x03, 0xe8])), Buffer.from('never looked at'))
      expected.push(['close'])
      assert.deepEqual(read(Buffer.concat(wire), cuts), { events: expected, fault: undefined })
    }),
  )
})

const broken: Record<string, Buffer> = {
  'a frame that is not masked': Buffer.from('810548656c6c6f', 'hex'),
  'a reserved bit': Buffer.from('c18537fa213d7f9f4d5158', 'hex'),
  'an unknown kind': Buffer.from('838037fa213d', 'hex'),
  'an unknown control frame': Buffer.from('8b8037fa213d', 'hex'),
  'a ping in parts': clientFrame('ping', Buffer.from('x'), { isFinal: false }),
  'a ping that is too long': Buffer.from('89fe007e37fa213d', 'hex'),
  'a continuation of nothing': clientFrame('continuation', Buffer.from('x')),
  'a message within a message': Buffer.concat([
    clientFrame('text', Buffer.from('x'), { isFinal: false }),
    clientFrame('text', Buffer.from('y')),
  ]),
  'a continuation after the end': Buffer.concat([
    clientFrame('binary', Buffer.from('x')),
    clientFrame('continuation', Buffer.from('y')),
  ]),
  'a close of one byte': clientFrame('close', Buffer.from([3])),
  'a close that says 1005': clientFrame('close', Buffer.from([0x03, 0xed])),
  'a close that says 0': clientFrame('close', Buffer.from([0, 0])),
  'a close that says 65535': clientFrame('close', Buffer.from([0xff, 0xff])),
}

for (const [what, bytes] of Object.entries(broken)) {
  test(`refuses ${what}`, () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      assert.equal(read(Buffer.concat([bytes, Buffer.alloc(64)]), [cut]).fault, 1002)
    }
  })
}

test('refuses a length that cannot be counted', () => {
  for (const length of ['ffffffffffffffff', '8000000000000000', '0020000000000000']) {
    assert.equal(read(Buffer.from(`82ff${length}37fa213d`, 'hex')).fault, 1009)
  }
  assert.equal(read(Buffer.from('82ff001fffffffffffff37fa213d', 'hex')).fault, undefined)
})

test('never throws, whatever bytes it gets', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => {
      const { fault } = read(Buffer.from(bytes), cuts)
      assert.ok(fault === undefined || fault === 1002 || fault === 1009)
    }),
    { numRuns: 2000 },
  )
})

test('writes heads of every length, unmasked and final', () => {
  const heads: [number, string][] = [
    [0, '8200'],
    [125, '827d'],
    [126, '827e007e'],
    [65_535, '827effff'],
    [65_536, '827f0000000000010000'],
  ]
  for (const [length, hex] of heads) assert.equal(binaryHead(length).toString('hex'), hex)
  assert.equal(pongFrame(Buffer.from('Hello')).toString('hex'), '8a0548656c6c6f')
  assert.equal(closeFrame(1000).toString('hex'), '880203e8')
})
