import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { publicLocation } from './proxied-headers.ts'

describe('when the host was rewritten to x.local, a redirect to', () => {
  const cases: [sent: string, seen: string][] = [
    ['http://x.local/p', 'https://a.example:8443/p'],
    ['https://X.Local/p?q#f', 'https://a.example:8443/p?q#f'],
    ['http://x.local:80', 'https://a.example:8443'],
    ['HTTP://x.local?q', 'https://a.example:8443?q'],
    ['//x.local/p', '//a.example:8443/p'],
    ['/p', '/p'],
    ['p', 'p'],
    ['', ''],
    ['http://y.local/p', 'http://y.local/p'],
    ['http://x.local.evil.example/p', 'http://x.local.evil.example/p'],
    ['http://x.local:8080/p', 'http://x.local:8080/p'],
    ['http://user@x.local/p', 'http://user@x.local/p'],
    ['ftp://x.local/p', 'ftp://x.local/p'],
    ['/p?to=http://x.local/', '/p?to=http://x.local/'],
  ]
  for (const [sent, seen] of cases) {
    test(`${sent || 'nothing'} is seen as ${seen || 'nothing'}`, () => {
      assert.equal(publicLocation(sent, 'x.local', { scheme: 'https', authority: 'a.example:8443' }), seen)
    })
  }

  test('a port belongs to the host', () => {
    const place = { scheme: 'http', authority: 'a.example' } as const
    assert.equal(publicLocation('http://x.local:3000/p', 'x.local:3000', place), 'http://a.example/p')
    assert.equal(publicLocation('http://x.local/p', 'x.local:3000', place), 'http://x.local/p')
  })
})
