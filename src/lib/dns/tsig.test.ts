import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDnsMessage, writeDnsMessage } from './dns-message.ts'
import { signDnsMessage, type TsigKey, tsigFault } from './tsig.ts'

/** Sent by `nsupdate` of BIND 9.18 with the key below: an update that adds one TXT record. */
const recorded = {
  'hmac-sha256':
    'd6c128000001000000010001076578616d706c6503636f6d00000600010f5f61636d652d6368616c6c656e6765c00c001000010000003c00100f67666a3958712e2e2e526738356e4d07706f737465726e0000fa00ff00000000003d0b686d61632d7368613235360000006afc3b76012c00200c33e096ed8bf64c516703e26ef027cfa4630a40bbd790a4ccd273137a263cd5d6c100000000',
  'hmac-sha512':
    '6d2528000001000000010001076578616d706c6503636f6d00000600010f5f61636d652d6368616c6c656e6765c00c001000010000003c00100f67666a3958712e2e2e526738356e4d07706f737465726e0000fa00ff00000000005d0b686d61632d7368613531320000006afc3b77012c00405ca1b233b323ef390a05a96c719293e3e8c99b67f5398d5608a24662983363c6b91313f65e155ee6ac824fcb837a5ee71b471bf31bdedfb6df456e9592c9b3396d2500000000',
} as const

const secret = Buffer.from('c2VjcmV0IG9mIHRoZSBuYW1lIHNlcnZlcg==', 'base64')
const keyFor = (algorithm: TsigKey['algorithm']): TsigKey => ({ name: 'postern', algorithm, secret })
const key = keyFor('hmac-sha256')

for (const algorithm of ['hmac-sha256', 'hmac-sha512'] as const) {
  test(`signs with ${algorithm} as nsupdate does, byte for byte`, () => {
    const bytes = Buffer.from(recorded[algorithm], 'hex')
    const message = readDnsMessage(bytes)
    const at = bytes.readUIntBE(bytes.indexOf(Buffer.from('hmac-')) + 'hmac-sha256'.length + 1, 6) * 1000
    assert.equal(tsigFault(bytes, message, { key: keyFor(algorithm), now: at }), undefined)
    const unsigned = Buffer.from(bytes.subarray(0, message.lastRecordAt))
    unsigned.writeUInt16BE(0, 10)
    assert.equal(signDnsMessage(unsigned, keyFor(algorithm), at).bytes.toString('hex'), recorded[algorithm])
  })
}

const NOW = Date.UTC(2030, 0, 1)
const request = signDnsMessage(writeDnsMessage({ id: 7, opcode: 5, questions: [] }), key, NOW)
const answer = writeDnsMessage({ id: 7, opcode: 5, isAnswer: true, questions: [] })

const judge = (bytes: Buffer, { now = NOW, of = key }: { now?: number; of?: TsigKey } = {}) =>
  tsigFault(bytes, readDnsMessage(bytes), { key: of, requestMac: request.mac, now })

test('accepts an answer that is signed for its request, and nothing else', () => {
  const { bytes } = signDnsMessage(answer, key, NOW, request.mac)
  assert.equal(judge(bytes), undefined)
  assert.match(judge(answer) ?? '', /not signed/)
  // A recorded answer to another request.
  assert.match(judge(signDnsMessage(answer, key, NOW, Buffer.alloc(32)).bytes) ?? '', /signature is wrong/)
  assert.match(judge(signDnsMessage(answer, key, NOW).bytes) ?? '', /signature is wrong/)
  assert.match(judge(bytes, { now: NOW + 600_000 }) ?? '', /too far from our clock/)
  assert.match(judge(bytes, { of: { ...key, name: 'other' } }) ?? '', /another key/)
  assert.match(judge(bytes, { of: { ...key, secret: Buffer.alloc(32) } }) ?? '', /signature is wrong/)
})

test('any changed bit of a signed answer is noticed', () => {
  const { bytes } = signDnsMessage(answer, key, NOW, request.mac)
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    let fault: string | undefined
    try {
      fault = judge(changed)
    } catch (error) {
      fault = String(error)
    }
    // Bits that mean nothing here: the number, replaced by the original one, and case, class and TTL of the record.
    const isUnnoticed = fault === undefined
    const at = bit >> 3
    const tsigAt = answer.length
    const isIgnored =
      at < 2 || (at > tsigAt && at < tsigAt + 1 + 'postern'.length) || (at > tsigAt + 8 && at <= tsigAt + 16)
    const isAlgorithm = at > tsigAt + 18 && at < tsigAt + 20 + 'hmac-sha256'.length
    assert.ok(!isUnnoticed || isIgnored || isAlgorithm, `bit ${bit}`)
  }
})
