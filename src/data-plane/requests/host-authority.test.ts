import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hostOf } from './host-authority.ts'

describe('the host of', () => {
  const cases: Record<string, string | undefined> = {
    'a.example.com': 'a.example.com',
    'A.Example.COM:8443': 'a.example.com',
    'a.example.com:': 'a.example.com',
    'a.example.com.': 'a.example.com',
    'a.example.com.:443': 'a.example.com',
    'xn--bcher-kva.example': 'xn--bcher-kva.example',
    '_x.example.com': '_x.example.com',
    localhost: 'localhost',
    '127.0.0.1:80': '127.0.0.1',
    '[::1]': '[::1]',
    '[2001:DB8::1]:443': '[2001:db8::1]',
    [`${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`]: `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
    '': undefined,
    '.': undefined,
    ':80': undefined,
    'a..b': undefined,
    '.a': undefined,
    'a.example.com..': undefined,
    'user@a.example.com': undefined,
    'a.example.com@b.example.com': undefined,
    'a.example.com:80:80': undefined,
    'a.example.com:65536': undefined,
    'a.example.com:-1': undefined,
    'a.example.com:8o': undefined,
    'a example.com': undefined,
    'a.example.com/': undefined,
    'a.example.com?': undefined,
    'a.example.com\\b': undefined,
    'bücher.example': undefined,
    'a%2eexample.com': undefined,
    'a,b': undefined,
    '*.example.com': undefined,
    '::1': undefined,
    '[::1': undefined,
    '[fe80::1%25eth0]': undefined,
    '[fe80::1%eth0]': undefined,
    '[127.0.0.1]': undefined,
    'a\nb': undefined,
    ['a'.repeat(254)]: undefined,
  }
  for (const [authority, host] of Object.entries(cases)) {
    test(`${JSON.stringify(authority.slice(0, 40))} is ${host?.slice(0, 40) ?? 'none'}`, () => {
      assert.equal(hostOf(authority), host)
    })
  }
})
