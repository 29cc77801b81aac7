import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DnsDamage, dnsName, dnsType, readDnsMessage, readTxt, txtData, writeDnsMessage } from './dns-message.ts'

const head = (counts: readonly number[]) =>
  Buffer.concat([Buffer.from([0, 7, 0x84, 0]), Buffer.from(counts.flatMap((n) => [0, n]))])

test('a written message reads back the same', () => {
  const record = { name: '_acme-challenge.example.com', type: dnsType.txt, class: 1, ttl: 60, data: txtData('value') }
  const sent = {
    ...{ id: 513, opcode: 5, isAnswer: true, isTruncated: true, rcode: 9 },
    questions: [{ name: 'example.com', type: 6, class: 1 }],
    ...{ answers: [record], authorities: [], additionals: [record, record] },
  }
  const { lastRecordAt, targets, ...read } = readDnsMessage(writeDnsMessage(sent))
  assert.deepEqual(read, sent)
  assert.equal(targets.size, 0)
  assert.ok(lastRecordAt > 0)
  assert.equal(readTxt(record.data), 'value')
  assert.equal(readTxt(Buffer.from('\x02ab\x00\x01c', 'latin1')), 'abc')
})

test('follows compressed names backwards, also in the data of NS records', () => {
  const question = Buffer.concat([dnsName('Example.COM'), Buffer.from([0, 2, 0, 1])])
  const record = Buffer.from([0xc0, 12, 0, 2, 0, 1, 0, 0, 0, 60, 0, 6, 3, 0x6e, 0x73, 0x31, 0xc0, 12])
  const { questions, answers, targets } = readDnsMessage(Buffer.concat([head([1, 1, 0, 0]), question, record]))
  assert.equal(questions[0]?.name, 'example.com')
  assert.deepEqual([...targets.values()], ['ns1.example.com'])
  assert.equal(answers[0]?.name, 'example.com')
})

const damaged: readonly [what: string, bytes: Buffer][] = [
  ['nothing', Buffer.alloc(0)],
  ['half a head', Buffer.alloc(6)],
  ['a question that is not there', head([1, 0, 0, 0])],
  ['bytes after the end', Buffer.concat([head([0, 0, 0, 0]), Buffer.of(0)])],
  ['a name that refers to itself', Buffer.concat([head([1, 0, 0, 0]), Buffer.from([0xc0, 12, 0, 1, 0, 1])])],
  ['a name that refers forwards', Buffer.concat([head([1, 0, 0, 0]), Buffer.from([0xc0, 14, 0, 0, 1, 0, 1])])],
  ['a label that goes beyond the end', Buffer.concat([head([1, 0, 0, 0]), Buffer.from([9, 97])])],
  ['a label of an unknown kind', Buffer.concat([head([1, 0, 0, 0]), Buffer.from([0x41, 0, 0, 1, 0, 1])])],
  ['a dot inside a label', Buffer.concat([head([1, 0, 0, 0]), Buffer.from([3, 97, 46, 98, 0, 0, 1, 0, 1])])],
  [
    'a name that never ends',
    Buffer.concat([
      head([2, 0, 0, 0]),
      Buffer.from([1, 97, 0, 0, 1, 0, 1]),
      Buffer.from([1, 98, 0xc0, 19, 0, 1, 0, 1]),
    ]),
  ],
  [
    'more records than there can be',
    Buffer.concat([head([0, 0, 0, 0]).subarray(0, 6), Buffer.from([255, 255, 0, 0, 0, 0])]),
  ],
]
for (const [what, bytes] of damaged) {
  test(`${what} is refused`, () => assert.throws(() => readDnsMessage(bytes), DnsDamage))
}

test('a name with too many or too long labels is not written', () => {
  for (const name of ['a..b', `${'a'.repeat(64)}.com`, Array.from({ length: 70 }, () => 'abc').join('.')]) {
    assert.throws(() => dnsName(name), DnsDamage)
  }
  assert.equal(dnsName('').toString('hex'), '00')
})

test('any bytes are read or refused', () => {
  const some = fc.oneof(
    fc.uint8Array({ maxLength: 600 }),
    fc.uint8Array({ maxLength: 200 }).map((rest) => Buffer.concat([head([1, 1, 0, 1]), rest])),
  )
  fc.assert(
    fc.property(some, (bytes) => {
      try {
        readDnsMessage(Buffer.from(bytes))
      } catch (error) {
        assert.ok(error instanceof DnsDamage)
      }
    }),
    { numRuns: 300 },
  )
})
