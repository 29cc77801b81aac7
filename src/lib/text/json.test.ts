import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import fc from 'fast-check'
import { BadJson, MAX_JSON_VALUES, parseJson, readJson } from './json.ts'

const MIB = 1024 * 1024
/** As JSON.stringify writes one; a pair it leaves as it is. */
const LONE_SURROGATE = /\\ud[89a-f]/
const BOUNDS = { maxDepth: 32, maxValues: MAX_JSON_VALUES }

test('any value that JSON.stringify writes is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      if (text.includes('"__proto__"') || text.includes('\\u0000')) return
      assert.deepEqual(read(text), JSON.parse(text))
    }),
  )
})

test('any text is read as JSON.parse reads it, or refused with a sentence', () => {
  const token = fc.constantFrom(
    ...['{', '}', '[', ']', ',', ':', '"a"', '"b"', '"', '\\', '\\u', '\\u0041', '\\ud83d\\ude00', '\\n', '\\x'],
    ...['0', '-0', '-', '01', '1.5', '1.', '.5', '1e2', '1e+', 'E', '+1', 'true', 'false', 'null', 'nul', 'NaN'],
    ...[' ', '\n', '\t', '\r', '\v', '\u00a0', '\u2028', '/**/', '\u{1f600}', "'", '12345678901234567890', '1e-400'],
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
      const text = tokens.join('')
      let expected: unknown
      let isJson = true
      try {
        expected = JSON.parse(text)
      } catch {
        isJson = false
      }
      try {
        const value = read(text)
        assert.ok(isJson, `took ${JSON.stringify(text)}`)
        assert.deepEqual(value, expected)
      } catch (error) {
        assert.ok(error instanceof BadJson, String(error))
        if (!isJson) return
        if (/not well-formed Unicode/.test(error.message)) return assert.match(JSON.stringify(expected), LONE_SURROGATE)
        assert.match(error.message, /appears twice|is too large/)
      }
    }),
    { numRuns: 20_000, examples: [[['"', '\\', '\\ud83d\\ude00', '"']]] },
  )
})

const notJson = /^the body is not JSON: /
const early = /it ends too early$/

const refused: [what: string, text: string | Buffer, message: RegExp][] = [
  ['nothing', '', /it is blank$/],
  ['white space', ' \r\n\t', /it is blank$/],
  ['a word', 'hello', /unexpected character at line 1, column 1$/],
  ['a second value', '{} {}', /unexpected character at line 1, column 4$/],
  ['a comma at the end', '[1,\n2,]', /unexpected character at line 2, column 3$/],
  ['a comma in front', '[,1]', notJson],
  ['a comma alone in an object', '{,}', notJson],
  ['a key without quotes', '{a: 1}', /unexpected character at line 1, column 2$/],
  ['single quotes', "{'a': 1}", notJson],
  ['a key without a value', '{"a"}', notJson],
  ['a comment', '{} // done', notJson],
  ['brackets that do not fit', '[1}', notJson],
  ['an open list', '[1', early],
  ['an open object', '{"a":1', early],
  ['an open string', '"abc', early],
  ['a backslash at the end', '"abc\\', early],
  ['a line break in a string', '"a\nb"', notJson],
  ['a tab in a string', '"a\tb"', notJson],
  ['an unknown escape', '"\\x41"', /bad escape in the string at line 1, column 1$/],
  ['half an escape', '"\\u00"', /bad escape in the string/],
  ['a leading zero', '01', notJson],
  ['a leading plus', '+1', notJson],
  ['a bare minus', '-', notJson],
  ['a fraction without digits', '1.', notJson],
  ['hexadecimal', '0x10', notJson],
  ['Infinity', 'Infinity', notJson],
  ['a number beyond all', '[1e999]', /the number at line 1, column 2 is too large$/],
  ['a number below all', '-1e999', /too large$/],
  ['a key twice', '{"a": 1, "b": 2, "a": 1}', /the key "a" appears twice in one object$/],
  ['a key twice, once escaped', '{"a": 1, "\\u0061": 2}', /the key "a" appears twice/],
  ['the empty key twice', '{"": 1, "": 2}', /the key "" appears twice/],
  ['a key twice deep inside', '[{"x": {"constructor": 1, "constructor": 1}}]', /"constructor" appears twice/],
  ['the key __proto__', '{"a": {"__proto__": {"admin": true}}}', /`__proto__` is not allowed$/],
  ['the key __proto__, escaped', '{"\\u005f_proto__": 1}', /`__proto__` is not allowed$/],
  ['a NUL in a value', '["a\\u0000b"]', /NUL character$/],
  ['a NUL in a key', '{"a\\u0000": 1}', /NUL character$/],
  ['a raw NUL', '"a\0b"', notJson],
  ['half of a surrogate pair', '["\\ud83d"]', /well-formed Unicode$/],
  ['a pair the wrong way round', '["\\ude00\\ud83d"]', /well-formed Unicode$/],
  ['half of a pair as a key', '{"\\ude00": 1}', /well-formed Unicode$/],
  ['a byte order mark', '\ufeff{}', /byte order mark/],
  ['a byte of Latin-1', Buffer.from([0x22, 0xe9, 0x22]), /UTF-8$/],
  ['an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), /UTF-8$/],
  ['a surrogate as three bytes', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /UTF-8$/],
  ['a character cut short', Buffer.from([0x22, 0xf0, 0x9f, 0x98]), /UTF-8$/],
  ['UTF-16', Buffer.from('{}', 'utf16le'), notJson],
  ['one level too many', `${'['.repeat(33)}${']'.repeat(33)}`, /deeper than 32 levels$/],
  ['one object too many', `${'{"a":'.repeat(33)}1${'}'.repeat(33)}`, /deeper than 32 levels$/],
]

for (const [what, text, message] of refused) {
  test(`refuses ${what}`, () => {
    assert.throws(() => read(text), { name: 'BadJson', message })
  })
}

const taken: [what: string, text: string, value: unknown][] = [
  ['32 levels', `${'['.repeat(32)}${']'.repeat(32)}`, JSON.parse(`${'['.repeat(32)}${']'.repeat(32)}`)],
  ['many objects beside each other', '[{},{},{"a":[{}]}]', [{}, {}, { a: [{}] }]],
  ['brackets inside strings', `"${'['.repeat(100)}"`, '['.repeat(100)],
  ['the same key in two objects', '[{"a":1},{"a":{"a":2}}]', [{ a: 1 }, { a: { a: 2 } }]],
  ['the names of an object’s own methods', '{"constructor":1,"toString":2}', { constructor: 1, toString: 2 }],
  ['minus zero', '-0', -0],
  ['a number too small to tell from zero', '1e-999', 0],
  ['every escape', '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"', '"\\/\b\f\n\r\té😀'],
  ['white space everywhere', ' { "a" : [ 1 , 2 ] } \n', { a: [1, 2] }],
]

for (const [what, text, value] of taken) {
  test(`accepts ${what}`, () => {
    assert.deepEqual(read(text), value)
  })
}

test('a string of escapes is the same however long it is', () => {
  const spelling = fc.constantFrom('\\\\', '\\"', '\\n', '\\u00e9', '\\ud83d\\ude00', 'u', 'é', '😀')
  fc.assert(
    fc.property(fc.array(spelling, { minLength: 1, maxLength: 5 }), fc.nat(12), (escapes, shift) => {
      const text = JSON.stringify({ [`${'k'.repeat(shift)}`]: 1 }).replace(/"(k*)"/, `"$1${many(escapes)}"`)
      assert.deepEqual(read(text), JSON.parse(text))
      assert.deepEqual(read(`["${many(escapes)}"]`), JSON.parse(`["${many(escapes)}"]`))
    }),
  )
})

/** Longer than the piece of a string that one step reads. */
const many = (escapes: readonly string[]): string => escapes.join('').repeat(20_000)

test('half of a surrogate pair is refused at the end of a long string of pairs', () => {
  const pairs = many(['\\ud83d\\ude00'])
  for (let shift = 0; shift < 12; shift++) {
    const text = `${'x'.repeat(shift)}${pairs}`
    assert.throws(() => read(`"${text}\\ud83d"`), { message: /well-formed Unicode$/ })
    assert.throws(() => read(`"${text}\\ud83d\\u00"`), { message: /bad escape in the string at line 1, column 1$/ })
  }
})

const large: [what: string, text: string][] = [
  ['one string of escapes', `"${many(['\\u0041'])}"`],
  ['objects with a key of their own each', `[${Array.from({ length: 1500 }, (_, i) => `{"key${i}":1}`).join()}]`],
  ['text that ends too early', `["${many(['\\n\\n\\n\\n'])}", `],
]

for (const [what, text] of large) {
  test(`other work runs while ${what} is read, and the outcome is the same`, async () => {
    let now = 0
    // The clock advances by one millisecond at each reading.
    const clock = mock.method(performance, 'now', () => now++)
    let rounds = 0
    const round = setInterval(() => rounds++, 0)
    try {
      const atOnce = outcomeOf(() => read(text))
      const inTurns = await readJson(Buffer.from(text), BOUNDS).catch((error: unknown) => String(error))
      assert.deepEqual(inTurns, atOnce)
      assert.ok(now > 5)
      assert.ok(rounds > 0, 'nobody else had a turn')
    } finally {
      clearInterval(round)
      clock.mock.restore()
    }
  })
}

function outcomeOf(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return String(error)
  }
}

test('a key named like a built-in method is an ordinary key', () => {
  const value = read('{"hasOwnProperty": 1}')
  assert.ok(typeof value === 'object' && value !== null && Object.hasOwn(value, 'hasOwnProperty'))
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
})

/** The time limit of a test file ends a run that is not linear: at 1 MiB, quadratic means minutes. */
const hostile: [what: string, text: string][] = [
  ['brackets', '['.repeat(MIB)],
  ['objects', '{"a":'.repeat(MIB / 5)],
  ['one string of escaped quotes without an end', `"${'\\"'.repeat(MIB / 2)}`],
  ['one string of backslashes without an end', `"${'\\\\'.repeat(MIB / 2)}`],
  ['quotes', '"'.repeat(MIB)],
  ['one string of backslashes', `"${'\\\\'.repeat(MIB / 2)}"`],
  ['one string without an end', `"${'a'.repeat(MIB)}`],
  ['one number', '1'.repeat(MIB)],
  ['one exponent', `1e${'1'.repeat(MIB)}`],
  ['one number below zero', `0.${'0'.repeat(MIB)}1`],
  ['white space', ' '.repeat(MIB)],
  ['lines', `${'\n'.repeat(MIB)}x`],
  ['many keys', `{${Array.from({ length: MIB / 12 }, (_, i) => `"key${i}":1`).join()}}`],
  ['many numbers as keys', `{${Array.from({ length: MIB / 12 }, (_, i) => `"${i * 7919}":1`).join()}}`],
  ['one key over and over', `{${'"a":1,'.repeat(MIB / 6)}"a":1}`],
  ['many lists', `[${'[],'.repeat(MIB / 3)}[]]`],
  ['many strings with escapes', `[${'"\\n",'.repeat(MIB / 5)}1]`],
]

for (const [what, text] of hostile) {
  test(`1 MiB of ${what} is read or refused quickly`, () => {
    try {
      read(text)
    } catch (error) {
      assert.ok(error instanceof BadJson, String(error))
      assert.ok(error.message.length < 200)
    }
  })
}

const tooWide: [what: string, text: (values: number) => string][] = [
  ['numbers in a list', (values) => `[${'1,'.repeat(values - 2)}1]`],
  ['empty lists in a list', (values) => `[${'[],'.repeat(values - 2)}[]]`],
  [
    'keys of an object, each with its value',
    (values) => {
      const pairs = Array.from({ length: (values - 1) / 2 }, (_, i) => `"${i}":1`)
      return `{${pairs.join()}}`
    },
  ],
]

for (const [what, text] of tooWide) {
  test(`as many ${what} as allowed are accepted, and one more is refused before the rest is read`, () => {
    const most = what.startsWith('keys') ? MAX_JSON_VALUES - 1 : MAX_JSON_VALUES
    assert.equal(typeof read(text(most)), 'object')
    // The rest is not JSON, but the reader stops before it.
    assert.throws(() => read(`${text(most + 2)}}]nonsense`), { message: /over 5000 values and keys/ })
  })
}

test('no message contains a value of the body', () => {
  const secret = 'hunter2hunter2'
  const whole = `{"client_secret": "${secret}", "list": ["${secret}", {"a": "${secret}"}], "n": 12}`
  fc.assert(
    fc.property(fc.nat(whole.length), fc.constantFrom('', 'x', '"', '\\', '}', ']', ',', '\n', '\0'), (at, insert) => {
      for (const text of [whole.slice(0, at) + insert, whole.slice(0, at) + insert + whole.slice(at)]) {
        try {
          read(text)
        } catch (error) {
          assert.ok(error instanceof BadJson && !error.message.includes('hunter'), String(error))
        }
      }
    }),
    { numRuns: 2000 },
  )
})

function read(text: string | Buffer): unknown {
  return parseJson(Buffer.from(text), BOUNDS)
}
