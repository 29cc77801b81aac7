import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Ends, type ProxyHeaderRead, ProxyHeaderReader, proxyHeaderOf } from './proxy-protocol.ts'

const four: Ends = { ip: '192.0.2.7', port: 50_000, serverIp: '198.51.100.1', serverPort: 443 }
const six: Ends = { ip: '2001:db8::7', port: 1, serverIp: '2001:db8::1', serverPort: 65_535 }
const mixed: Ends = { ip: '192.0.2.7', port: 50_000, serverIp: '2001:db8::1', serverPort: 443 }

const SIGNATURE = '0d0a0d0a000d0a515549540a'

describe('a header of version 1', () => {
  const cases: Record<string, [ends: Ends, line: string]> = {
    'between IPv4 addresses': [four, 'PROXY TCP4 192.0.2.7 198.51.100.1 50000 443\r\n'],
    'between IPv6 addresses': [six, 'PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n'],
    'between families': [mixed, 'PROXY TCP6 ::ffff:192.0.2.7 2001:db8::1 50000 443\r\n'],
    'for what is no address': [{ ...four, ip: '' }, 'PROXY UNKNOWN\r\n'],
  }
  for (const [name, [ends, line]] of Object.entries(cases)) {
    test(name, () => assert.equal(proxyHeaderOf(1, ends).toString('latin1'), line))
  }
})

describe('a header of version 2', () => {
  const cases: Record<string, [ends: Ends, hex: string]> = {
    'between IPv4 addresses': [four, `${SIGNATURE}2111000cc0000207c6336401c35001bb`],
    'between IPv6 addresses': [
      six,
      `${SIGNATURE}21210024${'20010db8000000000000000000000007'}${'20010db8000000000000000000000001'}0001ffff`,
    ],
    'between families': [
      mixed,
      `${SIGNATURE}21210024${'00000000000000000000ffffc0000207'}${'20010db8000000000000000000000001'}c35001bb`,
    ],
    'for what is no address': [{ ...four, serverIp: 'x' }, `${SIGNATURE}21000000`],
  }
  for (const [name, [ends, hex]] of Object.entries(cases)) {
    test(name, () => assert.equal(proxyHeaderOf(2, ends).toString('hex'), hex))
  }
})

describe('reading', () => {
  for (const version of [1, 2] as const) {
    for (const [name, ends] of Object.entries({ four, six })) {
      test(`version ${version}, ${name}, in pieces of any size, leaves the bytes that follow`, () => {
        const whole = Buffer.concat([proxyHeaderOf(version, ends), Buffer.from('GET / HTTP/1.1\r\n')])
        for (let split = 0; split <= whole.length; split++) {
          const { ends: read, rest } = readAll([whole.subarray(0, split), whole.subarray(split)])
          assert.deepEqual(read, ends)
          assert.equal(rest.toString(), 'GET / HTTP/1.1\r\n')
        }
        const bytes = Array.from(whole, (byte) => Buffer.from([byte]))
        assert.deepEqual(readAll(bytes).ends, ends)
      })
    }
  }

  test('a visitor with an IPv4-mapped address is an IPv4 visitor', () => {
    assert.equal(readAll([proxyHeaderOf(2, mixed)]).ends?.ip, '192.0.2.7')
    assert.equal(readAll([proxyHeaderOf(1, mixed)]).ends?.ip, '192.0.2.7')
  })

  test('further fields of version 2 are ignored', () => {
    const header = Buffer.from(`${SIGNATURE}21110013c0000207c6336401c35001bb04000400000000`, 'hex')
    const { ends, rest } = readAll([Buffer.concat([header, Buffer.from('x')])])
    assert.deepEqual(ends, four)
    assert.equal(rest.toString(), 'x')
  })

  const silent: Record<string, Buffer> = {
    'UNKNOWN in version 1': Buffer.from('PROXY UNKNOWN\r\nx'),
    'UNKNOWN with addresses': Buffer.from('PROXY UNKNOWN ffff::1 ffff::2 1 2\r\nx'),
    'LOCAL in version 2': Buffer.from(`${SIGNATURE}2000000078`, 'hex'),
    'LOCAL with addresses': Buffer.from(`${SIGNATURE}2011000cc0000207c6336401c35001bb78`, 'hex'),
    'a family that is not TCP over IP': Buffer.from(`${SIGNATURE}213100010078`, 'hex'),
  }
  for (const [name, bytes] of Object.entries(silent)) {
    test(`${name} names nobody`, () => {
      const { ends, rest } = readAll([bytes])
      assert.equal(ends, undefined)
      assert.equal(rest.toString(), 'x')
    })
  }

  const refused: Record<string, Buffer> = {
    'HTTP without a header': Buffer.from('GET / HTTP/1.1\r\n'),
    'one wrong byte at the start': Buffer.from('PROXZ'),
    'a line without end': Buffer.from(`PROXY TCP4 ${'1'.repeat(200)}`),
    'an address of the other family': Buffer.from('PROXY TCP4 ::1 ::1 1 2\r\n'),
    'a name': Buffer.from('PROXY TCP4 localhost 1.1.1.1 1 2\r\n'),
    'octal octets': Buffer.from('PROXY TCP4 01.1.1.1 1.1.1.1 1 2\r\n'),
    'a port that is none': Buffer.from('PROXY TCP4 1.1.1.1 1.1.1.1 65536 2\r\n'),
    'a port with leading zeros': Buffer.from('PROXY TCP4 1.1.1.1 1.1.1.1 0080 2\r\n'),
    'two spaces': Buffer.from('PROXY TCP4  1.1.1.1 1.1.1.1 80 2\r\n'),
    'another version': Buffer.from(`${SIGNATURE}31110000`, 'hex'),
    'another command': Buffer.from(`${SIGNATURE}22110000`, 'hex'),
    'a length beyond the bound': Buffer.from(`${SIGNATURE}2111ffff`, 'hex'),
    'a family that does not exist': Buffer.from(`${SIGNATURE}2141000cc0000207c6336401c35001bb`, 'hex'),
    'a protocol that does not exist': Buffer.from(`${SIGNATURE}2113000cc0000207c6336401c35001bb`, 'hex'),
    'addresses that are cut': Buffer.from(`${SIGNATURE}21110004c0000207`, 'hex'),
  }
  for (const [name, bytes] of Object.entries(refused)) {
    test(`${name} is refused`, () => assert.ok(new ProxyHeaderReader().push(bytes) instanceof Error))
  }
})

function readAll(chunks: readonly Buffer[]): ProxyHeaderRead {
  const reader = new ProxyHeaderReader()
  for (const [i, chunk] of chunks.entries()) {
    const read = reader.push(chunk)
    if (read instanceof Error) throw read
    if (read) return { ends: read.ends, rest: Buffer.concat([read.rest, ...chunks.slice(i + 1)]) }
  }
  return assert.fail('the header was not whole')
}
