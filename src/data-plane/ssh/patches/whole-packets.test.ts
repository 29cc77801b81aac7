import assert from 'node:assert/strict'
import { createCipheriv, createSecretKey, randomBytes, randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import type { GcmDecipher } from 'ssh2'
import { decipherWhole } from './whole-packets.ts'

const KEY = randomBytes(16)

/** Packets as a client makes them, one after the other. */
class Sender {
  #iv: Buffer

  constructor(iv: Buffer) {
    this.#iv = Buffer.from(iv)
  }

  packet(payload: Buffer, filled = filling(payload.length)): Buffer {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(1 + payload.length + filled)
    const cipher = createCipheriv('aes-128-gcm', KEY, this.#iv)
    cipher.setAAD(length)
    const bytes = cipher.update(Buffer.concat([Buffer.of(filled), payload, Buffer.alloc(filled, 0xee)]))
    cipher.final()
    this.#iv.writeBigUInt64BE(BigInt.asUintN(64, this.#iv.readBigUInt64BE(4) + 1n), 4)
    return Buffer.concat([length, bytes, cipher.getAuthTag()])
  }
}

function filling(payload: number): number {
  const over = (1 + payload) % 16
  return 16 - over < 4 ? 32 - over : 16 - over
}

function receiver({ iv, onPayload }: { iv: Buffer; onPayload: GcmDecipher['_onPayload'] }): GcmDecipher {
  const decipher: GcmDecipher = {
    inSeqno: 0,
    _onPayload: onPayload,
    decrypt: () => assert.fail('the library deciphers'),
    _decipherSSLName: 'aes-128-gcm',
    _decipherKey: createSecretKey(KEY),
    _decipherIV: Buffer.from(iv),
    _lenBytes: 0,
  }
  decipherWhole(decipher)
  return decipher
}

/** A receiver, the payloads that it got, and a matching sender. */
function pair(iv = randomBytes(12)): { sender: Sender; decipher: GcmDecipher; heard: Buffer[] } {
  const heard: Buffer[] = []
  const decipher = receiver({ iv, onPayload: (payload) => void heard.push(Buffer.from(payload)) })
  return { sender: new Sender(iv), decipher, heard }
}

describe('packets that come in pieces', () => {
  const sizes = [1, 2, 3, 4, 5, 15, 16, 17, 19, 20, 21, 36, 100, 4096, 65_536]
  for (const most of sizes) {
    test(`of at most ${most} bytes are read, in reused memory`, () => {
      const { sender, decipher, heard } = pair()
      const payloads = Array.from({ length: 40 }, (_, i) =>
        randomBytes([0, 1, 11, 12, 27, 500, 34_900 - 40][i % 7] ?? 0),
      )
      const all = Buffer.concat(payloads.map((payload) => sender.packet(payload)))
      const lent = Buffer.alloc(most + 7)
      for (let at = 0; at < all.length; ) {
        const bytes = Math.min(all.length - at, 1 + randomInt(most))
        all.copy(lent, 7, at, at + bytes)
        assert.equal(decipher.decrypt(lent, 7, 7 + bytes), undefined)
        lent.fill(0xff)
        at += bytes
      }
      assert.deepEqual(heard, payloads)
      assert.equal(decipher.inSeqno, payloads.length)
    })
  }
})

test('the packet counter carries over its eight bytes and leaves the four before it alone', () => {
  const { sender, decipher, heard } = pair(Buffer.from(`01020304${'ff'.repeat(8)}`, 'hex'))
  for (let i = 0; i < 3; i++) {
    const packet = sender.packet(Buffer.of(i))
    decipher.decrypt(packet, 0, packet.length)
  }
  assert.deepEqual(heard, [Buffer.of(0), Buffer.of(1), Buffer.of(2)])
  assert.equal(decipher._decipherIV.toString('hex'), '010203040000000000000002')
})

test('a packet with any bit changed is refused, and none of it is passed on', () => {
  const iv = randomBytes(12)
  const whole = new Sender(iv).packet(Buffer.from('a payload'))
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const heard: Buffer[] = []
    const decipher = receiver({ iv, onPayload: (payload) => void heard.push(payload) })
    const bent = Buffer.from(whole)
    bent[bit >> 3] = (bent[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    let isRefused = false
    try {
      decipher.decrypt(bent, 0, bent.length)
    } catch {
      isRefused = true
    }
    assert.equal(heard.length, 0, `bit ${bit}`)
    // With a larger length it would wait for the rest.
    assert.ok(isRefused || bent.readUInt32BE(0) > whole.readUInt32BE(0), `bit ${bit}`)
  }
})

test('a packet cannot be repeated or come out of order', () => {
  const twice = pair()
  const packet = twice.sender.packet(Buffer.from('one'))
  twice.decipher.decrypt(packet, 0, packet.length)
  assert.throws(() => twice.decipher.decrypt(packet, 0, packet.length))
  const early = pair()
  early.sender.packet(Buffer.from('one'))
  const second = early.sender.packet(Buffer.from('two'))
  assert.throws(() => early.decipher.decrypt(second, 0, second.length))
})

for (const length of [0, 15, 17, 34_992, 2 ** 31, 2 ** 32 - 16]) {
  test(`a length of ${length} is refused as soon as it is there`, () => {
    for (const pieces of [1, 4]) {
      const { decipher } = pair()
      const bytes = Buffer.alloc(4)
      bytes.writeUInt32BE(length)
      assert.throws(() => {
        for (let at = 0; at < 4; at += 4 / pieces) decipher.decrypt(bytes, at, at + 4 / pieces)
      }, /Bad packet length/)
    }
  })
}

test('more padding than packet is refused', () => {
  for (const [filled, isTaken] of [
    [15, true],
    [16, false],
    [255, false],
  ] as const) {
    const iv = randomBytes(12)
    const length = Buffer.of(0, 0, 0, 16)
    const cipher = createCipheriv('aes-128-gcm', KEY, iv)
    cipher.setAAD(length)
    const bytes = cipher.update(Buffer.concat([Buffer.of(filled), Buffer.alloc(15)]))
    cipher.final()
    const packet = Buffer.concat([length, bytes, cipher.getAuthTag()])
    const heard: Buffer[] = []
    const decipher = receiver({ iv, onPayload: (payload) => void heard.push(payload) })
    const read = () => decipher.decrypt(packet, 0, packet.length)
    if (isTaken) read()
    else assert.throws(read, /Bad packet length/)
    assert.deepEqual(heard, isTaken ? [Buffer.alloc(0)] : [])
  }
})

test('the receiver of a payload may stop, and learns where', () => {
  const iv = randomBytes(12)
  const sender = new Sender(iv)
  const packets = [sender.packet(Buffer.from('keys')), sender.packet(Buffer.from('under new keys'))]
  const both = Buffer.concat(packets)
  for (const from of [0, 10]) {
    const decipher = receiver({ iv, onPayload: () => false })
    // Also when the first packet is split over two reads.
    if (from > 0) assert.equal(decipher.decrypt(both, 0, from), undefined)
    assert.equal(decipher.decrypt(both, from, both.length), packets[0]?.length)
  }
})
