import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseUpstream } from './upstream.ts'

describe('an address of a service', () => {
  const cases: [text: string, url: string, at: object, isTls?: boolean][] = [
    ['3000', 'http://localhost:3000', { host: 'localhost', port: 3000 }],
    [':3000', 'http://localhost:3000', { host: 'localhost', port: 3000 }],
    ['app:8080', 'http://app:8080', { host: 'app', port: 8080 }],
    ['app2', 'http://app2:80', { host: 'app2', port: 80 }],
    ['127.0.0.1:80', 'http://127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
    ['[::1]:3000', 'http://[::1]:3000', { host: '::1', port: 3000 }],
    ['http://app', 'http://app:80', { host: 'app', port: 80 }],
    ['http://app/', 'http://app:80', { host: 'app', port: 80 }],
    ['https://localhost:8443', 'https://localhost:8443', { host: 'localhost', port: 8443 }, true],
    ['https://[fe80::1]', 'https://[fe80::1]:443', { host: 'fe80::1', port: 443 }, true],
    ['tcp://db:5432', 'tcp://db:5432', { host: 'db', port: 5432 }],
    ['tls://mail', 'tls://mail:443', { host: 'mail', port: 443 }, true],
    ['unix:/run/app.sock', 'unix:/run/app.sock', { path: '/run/app.sock' }],
    ['unix:///run/app.sock', 'unix:/run/app.sock', { path: '/run/app.sock' }],
  ]
  for (const [text, url, at, isTls = false] of cases) {
    test(`${text} is ${url}`, () => assert.deepEqual(parseUpstream(text, { scheme: 'http' }), { url, at, isTls }))
  }

  test('shows no scheme where none is known', () => assert.equal(parseUpstream('22').url, 'localhost:22'))

  const refused: [text: string, says: RegExp][] = [
    ['', /must be an address such as/],
    ['ftp://x', /must be an address such as/],
    ['a b', /must be an address such as/],
    ['::1', /must be an address such as/],
    ['[x]:1', /must be an address such as/],
    ['user@app:80', /must be an address such as/],
    ['app:0', /between 1 and 65535/],
    ['65536', /between 1 and 65535/],
    ['app', /must name a port/],
    ['tcp://app', /must name a port/],
    ['http://app/path', /must not have a path/],
    ['http://app?x', /must not have a path/],
    ['unix:run/app.sock', /absolute path/],
  ]
  for (const [text, says] of refused) test(`${text} is refused`, () => assert.throws(() => parseUpstream(text), says))
})
