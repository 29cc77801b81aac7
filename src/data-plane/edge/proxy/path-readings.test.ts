import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { asSent, hasOtherReadings, holdsForAllReadings, isPlain, splitTarget } from './path-readings.ts'

/** All readings of a path that is well-formed. */
function readings(sent: string): string[] {
  const found = new Set<string>()
  const path = asSent(sent) ?? assert.fail(`${sent} is malformed`)
  assert.ok(holdsForAllReadings(path, (reading) => Boolean(found.add(reading))))
  return [...found].sort()
}

describe('a path that all servers read alike', () => {
  const paths: Record<string, string> = {
    '/': '/',
    '/a/b': '/a/b',
    '/a.b/c.': '/a.b/c.',
    '/a/...': '/a/...',
    '/.well-known/x': '/.well-known/x',
    '/a/..b/.c': '/a/..b/.c',
    '/a:b@c,d=e&f+g!~*': '/a:b@c,d=e&f+g!~*',
    '/"<>^`{|}': '/"<>^`{|}',
    // These cannot be sent otherwise.
    '/a%20b': '/a b',
    '/b%C3%BCcher': '/bücher',
    '/a%0Ab%7F': '/a\nb\x7f',
    '/a%3Fb%23c': '/a?b#c',
  }
  for (const [sent, reading] of Object.entries(paths)) {
    test(`${sent} has one reading`, () => {
      assert.equal(asSent(sent), reading)
      assert.equal(hasOtherReadings(reading), false)
      assert.deepEqual(readings(sent), [reading])
    })
  }

  test('is found by one scan unless it has an escape or a segment that begins with a dot', () => {
    for (const sent of ['/', '/a/b', '/a.b/c.', '/a:b@c,d=e', '/"<>^`{|}']) assert.ok(isPlain(sent))
    for (const sent of ['/a%20b', '/.well-known', '/a//b', '/a;b', '/a\\b', '/a#b', '/a b', '/ü', '/a/../b'])
      assert.equal(isPlain(sent), false, sent)
  })
})

describe('a path that is malformed has no reading:', () => {
  const paths = ['', 'a', '/%', '/%z1', '/%2', '/%00', '/a%00.html', '/%ff', '/%c0%ae%c0%ae/', '/%ed%a0%80', '/%u002f']
  for (const sent of [...paths, '/a b', '/a#b', '/ü', '/a\0', '/a\x7f'])
    test(JSON.stringify(sent), () => assert.equal(asSent(sent), undefined))
})

describe('a path that servers read differently', () => {
  const paths: Record<string, readonly string[]> = {
    // Decoded or not; `%25` is decoded last, and the result is not decoded again.
    '/%61dmin': ['/%61dmin', '/admin'],
    '/b%c3%bc': ['/b%c3%bc', '/bü'],
    '/a%3f': ['/a%3f', '/a?'],
    '/%252e': ['/%252e', '/%2e'],
    '/a%2fb': ['/a%2fb', '/a/b'],
    '/a%5Cb': ['/a%5Cb', '/a\\b', '/a/b'],
    // A backslash.
    '/a\\b': ['/a\\b', '/a/b'],
    // Slashes, of which the first two may also begin a host.
    '/a//b': ['/a//b', '/a/b'],
    '//admin': ['//admin', '/', '/admin'],
    '//x/admin': ['//x/admin', '/admin', '/x/admin'],
    '/\\x/admin': ['//x/admin', '/\\x/admin', '/admin', '/x/admin'],
    // Dot segments.
    '/a/../b': ['/a/../b', '/b'],
    '/a/.': ['/a/', '/a/.'],
    '/a/b/..': ['/a/', '/a/b/..'],
    '/../../etc': ['/../../etc', '/etc'],
    '/a/%2e%2E/b': ['/a/%2e%2E/b', '/a/../b', '/b'],
    // All else may stay unchanged.
    '/a/%2e%2e/%62': ['/%62', '/a/%2e%2e/%62', '/a/../b', '/b'],
    '/%2e/%2eb': ['/%2e/%2eb', '/%2eb', '/./.b', '/.b'],
    '/%252e%252e/b': ['/%252e%252e/b', '/%2e%2e/b'],
    // Whether a segment ends at an encoded slash decides how far `..` climbs.
    '/a%2fb/../c': ['/a%2fb/../c', '/a/b/../c', '/a/c', '/c'],
    '/a%2fb/%2e%2e/c': ['/a%2fb/%2e%2e/c', '/a%2fb/../c', '/a/b/../c', '/a/c', '/c'],
    '/a//../b': ['/a//../b', '/a/../b', '/a/b', '/b'],
    // Parameters of a segment, or all from `;` on.
    '/a;x': ['/a', '/a;x'],
    '/a;x/b': ['/a', '/a/b', '/a;x/b'],
    '/x/..;/admin': ['/admin', '/x/..', '/x/../admin', '/x/..;/admin', '/'],
    '/a%3bx': ['/a', '/a%3bx', '/a;x'],
  }
  for (const [sent, expected] of Object.entries(paths)) {
    test(`${sent} is read as ${expected.join(' ')}`, () => {
      assert.deepEqual(readings(sent), [...expected].sort())
      assert.ok(hasOtherReadings(asSent(sent) ?? ''))
    })
  }
})

describe('whatever the path,', () => {
  const piece = fc.constantFrom(
    ...['/', '.', '..', '%2e', '%2f', '%2E%2e', 'a', '%61', '//', '%5c', '\\', ';', ';x', '%3b', '%25', '%C3%BC'],
  )
  const path = fc.array(piece, { maxLength: 10 }).map((pieces) => `/${pieces.join('')}`)

  test('all readings begin with a slash, and there is a single one exactly when no others are searched', () => {
    fc.assert(
      fc.property(path, (sent) => {
        const start = asSent(sent) ?? assert.fail('it is well-formed')
        const found = new Set<string>()
        const isWhole = holdsForAllReadings(start, (reading) => Boolean(found.add(reading)))
        for (const reading of found) assert.ok(reading.startsWith('/'), reading)
        assert.equal(isWhole && found.size === 1, !hasOtherReadings(start))
        if (isPlain(sent)) assert.deepEqual([...found], [sent])
      }),
      { numRuns: 2000 },
    )
  })

  test('the readings of known servers are included', () => {
    const decoded = (text: string): string => decodeURIComponent(text)
    const merged = (text: string): string => text.replace(/\/+/g, '/')
    const resolved = (text: string): string => resolve(text)
    const servers: Record<string, (sent: string) => string> = {
      Express: (sent) => sent.replaceAll('%C3%BC', 'ü'),
      'Go, Python': decoded,
      nginx: (sent) => resolved(merged(decoded(sent))),
      'nginx without merge_slashes': (sent) => resolved(decoded(sent)),
      Tomcat: (sent) => resolved(merged(decoded(sent.replace(/;[^/]*/g, '')).replaceAll('\\', '/'))),
      'Apache httpd': (sent) => decoded(resolved(merged(sent.replace(/%2e/gi, '.').replace(/%61/g, 'a')))),
      'new URL()': (sent) => new URL(sent, 'http://a.test').pathname.replaceAll('%C3%BC', 'ü'),
      'new URL(), decoded': (sent) => decoded(new URL(sent, 'http://a.test').pathname),
    }
    fc.assert(
      fc.property(path, fc.constantFrom(...Object.keys(servers)), (sent, server) => {
        // No host at all is an error to the URL class, and one with an escaped slash too.
        if (server.startsWith('new URL()') && /^\/+[/\\]/.test(sent)) return
        const found = new Set<string>()
        const isWhole = holdsForAllReadings(asSent(sent) ?? '', (reading) => Boolean(found.add(reading)))
        const reading = servers[server]?.(sent) ?? ''
        assert.ok(!isWhole || found.has(reading), `${server} reads ${sent} as ${reading}`)
      }),
      { numRuns: 5000 },
    )
  })
})

/** RFC 3986 §5.2.4 to the letter: buffers that are consumed. */
function resolve(path: string): string {
  let input = path
  let output = ''
  while (input !== '') {
    if (input.startsWith('/./')) input = input.slice(2)
    else if (input === '/.') input = '/'
    else if (input.startsWith('/../') || input === '/..') {
      input = `/${input.slice(4)}`
      output = output.slice(0, Math.max(0, output.lastIndexOf('/')))
    } else {
      const end = input.indexOf('/', 1)
      output += end < 0 ? input : input.slice(0, end)
      input = end < 0 ? '' : input.slice(end)
    }
  }
  return output
}

describe('a path that is long', () => {
  /** How many characters were examined, and whether those were all readings. */
  function look(sent: string): { characters: number; isWhole: boolean } {
    let characters = 0
    const isWhole = holdsForAllReadings(asSent(sent) ?? assert.fail('it is well-formed'), (reading) => {
      characters += reading.length
      return true
    })
    return { characters, isWhole }
  }

  test('and escaped throughout is examined completely', () => {
    for (const each of ['%41', '%2f', '%C3%BC', '%20']) {
      const sent = `/${each.repeat(65_000 / each.length)}`
      assert.equal(look(sent).isWhole, true, each)
    }
  })

  test('and has every kind of ambiguity is abandoned early', () => {
    for (const length of [100, 1000, 10_000, 65_000]) {
      const sent = `/${'a%2f..%5c.;%3b//\\%2e%2e/'.repeat(length / 24)}`
      const { characters } = look(sent)
      assert.ok(characters <= 32 * 1024 + 2 * sent.length, `${characters} characters`)
    }
    assert.equal(look(`/${'a%2f..%5c.;%3b//\\%2e%2e/'.repeat(2700)}`).isWhole, false)
  })
})

test('a target is split at the first question mark', () => {
  assert.deepEqual(splitTarget('/a?b?c'), { path: '/a', query: 'b?c' })
  assert.deepEqual(splitTarget('/a?'), { path: '/a', query: '' })
  assert.deepEqual(splitTarget('/a'), { path: '/a', query: '' })
})
