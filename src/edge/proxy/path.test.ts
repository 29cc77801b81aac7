import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { canonicalPath, splitTarget } from './path.ts'

describe('the canonical form of', () => {
  const cases: Record<string, string | undefined> = {
    '/': '/',
    '/a/b': '/a/b',
    '/a//b': '/a//b',
    '/a.b/.c': '/a.b/.c',
    '/a/...': '/a/...',
    '*': '*',
    '/a%20b': '/a b',
    '/%61%2Fb': '/a/b',
    '/%25%32%65': '/%2e',
    '/%252e%252e/a': '/%2e%2e/a',
    '/b%C3%BCcher': '/bücher',
    '/a/./b': '/a/b',
    '/a/../b': '/b',
    '/a/..': '/',
    '/a/.': '/a/',
    '/a/b/..': '/a/',
    '/../../etc/passwd': '/etc/passwd',
    '/public/%2e%2e/admin': '/admin',
    '/public/..%2fadmin': '/admin',
    '/public%2f..%2fadmin': '/admin',
    '/public/.%2e/admin': '/admin',
    '/a/%5c': '/a/\\',
    '/a;b=c,d': '/a;b=c,d',
    '/"<>^`{|}': '/"<>^`{|}',
    '': undefined,
    a: undefined,
    '/%': undefined,
    '/%z1': undefined,
    '/%2': undefined,
    '/%00': undefined,
    '/a%00.html': undefined,
    '/%ff': undefined,
    '/%c0%ae%c0%ae/': undefined,
    '/%ed%a0%80': undefined,
    '/a b': undefined,
    '/a#b': undefined,
    '/a\\..\\b': undefined,
    '/b\u00fccher': undefined,
    '/a\u0000': undefined,
    '/a\u007f': undefined,
  }
  for (const [path, canonical] of Object.entries(cases)) {
    test(`${JSON.stringify(path)} is ${canonical ?? 'none'}`, () => assert.equal(canonicalPath(path), canonical))
  }

  test('any path begins with a slash and has no dot segment left', () => {
    const piece = fc.constantFrom('/', '.', '..', '%2e', '%2f', '%2E%2e', 'a', '%61', '//', '%5c', '%25')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const canonical = canonicalPath(`/${pieces.join('')}`) ?? assert.fail('there is one')
        assert.ok(canonical.startsWith('/'))
        assert.doesNotMatch(canonical, /\/\.\.?(\/|$)/)
      }),
    )
  })
})

test('a target is split at the first question mark', () => {
  assert.deepEqual(splitTarget('/a?b?c'), { path: '/a', query: 'b?c' })
  assert.deepEqual(splitTarget('/a?'), { path: '/a', query: '' })
  assert.deepEqual(splitTarget('/a'), { path: '/a', query: '' })
})
