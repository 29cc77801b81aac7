import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readHostport, readName } from './hostport.ts'

const label63 = 'a'.repeat(63)
const name253 = [label63, label63, label63, 'a'.repeat(61)].join('.')

const taken: [text: string, host: string, port: number][] = [
  ['example.com:443', 'example.com', 443],
  ['EXAMPLE.Com:443', 'example.com', 443],
  ['example.com.:443', 'example.com', 443],
  ['localhost:1', 'localhost', 1],
  ['a:65535', 'a', 65_535],
  ['1and1.com:80', '1and1.com', 80],
  ['a--b.com:80', 'a--b.com', 80],
  ['*.example.com:443', '*.example.com', 443],
  ['*.EXAMPLE.com.:443', '*.example.com', 443],
  ['bücher.example:443', 'xn--bcher-kva.example', 443],
  ['BÜCHER.example:443', 'xn--bcher-kva.example', 443],
  ['bu\u0308cher.example:443', 'xn--bcher-kva.example', 443],
  ['xn--bcher-kva.example:443', 'xn--bcher-kva.example', 443],
  ['*.bücher.example:443', '*.xn--bcher-kva.example', 443],
  ['ｅｘａｍｐｌｅ.com:443', 'example.com', 443],
  ['例え.テスト:443', 'xn--r8jz45g.xn--zckzah', 443],
  ['127.0.0.1:20000', '127.0.0.1', 20_000],
  ['[::1]:20000', '[::1]', 20_000],
  ['[2001:DB8::1]:20000', '[2001:db8::1]', 20_000],
  ['[::ffff:10.0.0.1]:20000', '[::ffff:10.0.0.1]', 20_000],
  [`${name253}:443`, name253, 443],
  [`${name253}.:443`, name253, 443],
  [`${label63}.com:443`, `${label63}.com`, 443],
]

for (const [text, host, port] of taken) {
  test(`reads ${brief(text)} as ${brief(host)} and ${port}`, () => {
    assert.deepEqual(readHostport(text), { host, port })
  })
}

const form = /form `host:port`/
const badPort = /port between 1 and 65535/
const letters = /letters, digits and `-`/
const length = /1 to 253 characters/
const star = /`\*` only as the whole first label/
const ipv6 = /IPv6 address inside/

const refused: [text: string, message: RegExp][] = [
  ['', form],
  [':', form],
  ['example.com', form],
  ['example.com:', form],
  [':443', form],
  ['example.com:443:443', form],
  ['http://example.com:443', form],
  ['user@example.com:443', letters],
  ['example.com:443/path', badPort],
  ['example.com:0', badPort],
  ['example.com:65536', badPort],
  ['example.com:99999999999999999999', badPort],
  ['example.com:0443', badPort],
  ['example.com:+443', badPort],
  ['example.com:-1', badPort],
  ['example.com:4.43', badPort],
  ['example.com:1e3', badPort],
  ['example.com: 443', badPort],
  ['example.com:443 ', badPort],
  ['example.com:443\n', badPort],
  ['example.com:٤٤٣', badPort],
  ['.:443', length],
  ['..:443', letters],
  ['.example.com:443', letters],
  ['example..com:443', letters],
  ['example.com..:443', letters],
  ['-example.com:443', letters],
  ['example-.com:443', letters],
  ['ab--cd.com:443', letters],
  ['xn--.com:443', letters],
  ['exa_mple.com:443', letters],
  ['exa mple.com:443', letters],
  ['exa\nmple.com:443', letters],
  ['exam\u0000ple.com:443', letters],
  ['ex%61mple.com:443', letters],
  ['exämple_.com:443', letters],
  ['ä/b:443', letters],
  ['ä@b:443', letters],
  ['ä?b:443', letters],
  ['\u00ad:443', length],
  ['\u202e:443', /must/],
  ['😀\ud83d:443', /must/],
  [`${'a'.repeat(64)}.com:443`, letters],
  [`a${name253}:443`, length],
  [`*.${name253}:443`, length],
  [`${'ä'.repeat(250)}:443`, /must/],
  ['*:443', star],
  ['*.:443', star],
  ['**.example.com:443', star],
  ['*.*.example.com:443', star],
  ['foo.*.example.com:443', star],
  ['f*.example.com:443', star],
  ['*example.com:443', star],
  ['example.*:443', star],
  ['＊.example.com:443', star],
  ['*.127.0.0.1:443', /before an address/],
  ['::1:443', form],
  ['[::1]', form],
  ['[::1]443', form],
  ['[]:443', ipv6],
  ['[127.0.0.1]:443', ipv6],
  ['[example.com]:443', ipv6],
  ['[::1:443', form],
  ['[[::1]]:443', form],
  ['[::1%eth0]:443', ipv6],
  ['[:::]:443', ipv6],
  ['*.[::1]:443', form],
]

for (const [text, message] of refused) {
  test(`refuses ${JSON.stringify(brief(text))}`, () => {
    assert.throws(() => readHostport(text), { name: 'BadInput', message })
  })
}

test('a hostport that was read reads back the same', () => {
  const part = fc.string({
    unit: fc.oneof(fc.constantFrom('a', 'Z', '0', '-', '.', '*', 'ß', '例', 'xn--'), fc.string({ unit: 'binary' })),
    maxLength: 8,
  })
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
      let name: string
      try {
        name = readName(parts.join('.'))
      } catch (error) {
        assert.ok(error instanceof Error && error.name === 'BadInput', String(error))
        return
      }
      assert.match(name, /^(\*\.)?[a-z0-9.-]{1,253}$/)
      assert.equal(readName(name), name)
      assert.deepEqual(readHostport(`${name}:443`), { host: name, port: 443 })
    }),
    { numRuns: 5000 },
  )
})

test('a megabyte is refused quickly', () => {
  for (const text of ['a', '.', '*.', 'ä', ':', '[', '-', 'xn--', '😀'].map((unit) => unit.repeat(1_000_000))) {
    assert.throws(() => readHostport(text))
    assert.throws(() => readHostport(`${text}:443`))
  }
})

function brief(text: string): string {
  return text.length > 40 ? `${text.slice(0, 20)}... (${text.length} characters)` : text
}
