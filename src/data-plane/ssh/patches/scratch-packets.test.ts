import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { isScratch, packetFor, packetSent } from './scratch-packets.ts'

afterEach(packetSent)

for (const bare of [0, 4]) {
  test(`packets with ${bare} bytes in the clear are whole blocks, with the right length and enough padding`, () => {
    for (let payload = 1; payload < 40_000; payload += payload < 100 ? 1 : 777) {
      const packet = packetFor(payload, bare)
      const filled = packet[4] ?? 0
      assert.equal((packet.length - bare) % 16, 0)
      assert.equal(packet.readUInt32BE(0), packet.length - 4)
      assert.equal(packet.length, 5 + payload + filled)
      assert.ok(filled >= 4 && filled < 4 + 16 + 16)
      packetSent()
    }
  })
}

test('memory is reused once the previous packet was sent', () => {
  const first = packetFor(100, 4)
  packetSent()
  const second = packetFor(200, 4)
  assert.ok(isScratch(second) && second.buffer === first.buffer)
})

test('a packet that was not sent keeps its memory', () => {
  const first = packetFor(100, 4)
  first.fill(7, 5)
  const second = packetFor(100, 4)
  second.fill(8, 5)
  assert.notEqual(first.buffer, second.buffer)
  assert.deepEqual(new Set(first.subarray(5)), new Set([7]))
})

test('a packet that is too large for it gets its own memory', () => {
  const packet = packetFor(100_000, 4)
  assert.ok(!isScratch(packet) && packet.length > 100_000)
})

test('padding is not repeated', () => {
  const seen = new Set<string>()
  for (let i = 0; i < 5000; i++) {
    const packet = packetFor(6, 4)
    seen.add(packet.subarray(-(packet[4] ?? 0)).toString('hex'))
    packetSent()
  }
  assert.ok(seen.size > 4990)
})
