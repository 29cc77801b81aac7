import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { modules, modulesAt } from '../index.ts'
import { request } from '../testing/test-request.ts'
import { compileBasicAuth } from './traffic.ts'

const { request: judge } = compileBasicAuth({
  credentials: [
    { username: 'alan', password: 'hunter22' },
    { username: 'grace', password: 'pass:with:colons' },
    { username: 'jürgen', password: 'schlüssel' },
  ],
})
const refused = { refuse: 'CREDENTIALS_REQUIRED', headers: [['WWW-Authenticate', 'Basic realm="postern"']] }
const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`

const good: readonly [header: string, username: string][] = [
  [basic('alan:hunter22'), 'alan'],
  [basic('grace:pass:with:colons'), 'grace'],
  [basic('jürgen:schlüssel'), 'jürgen'],
  [basic('alan:hunter22').replace('Basic', 'bAsIc'), 'alan'],
  [basic('alan:hunter22').replace('Basic ', 'Basic   '), 'alan'],
  [basic('alan:hunter22').replace(/=+$/, ''), 'alan'],
]

for (const [header, username] of good) {
  test(`lets in ${username} with ${header.slice(0, 9)}…`, () => {
    const ctx = request({ headers: { Authorization: header } })
    assert.equal(judge?.(ctx), undefined)
    assert.equal(ctx.found.get('basic_auth.username'), username)
    assert.equal(ctx.found.get('basic_auth.decision'), 'allow')
  })
}

const bad: Record<string, string | string[]> = {
  'nothing to read': '',
  'a wrong password': basic('alan:hunter23'),
  'a password cut short': basic('alan:hunter2'),
  'a longer password': basic('alan:hunter22x'),
  'the password of another': basic('alan:pass:with:colons'),
  'a name alone': basic('alan'),
  'an empty pair': basic(':'),
  'another case': basic('Alan:hunter22'),
  'another scheme': basic('alan:hunter22').replace('Basic', 'Bearer'),
  'something that is no base64': 'Basic ???',
  'the pair in clear': 'Basic alan:hunter22',
  'two headers': [basic('alan:hunter22'), basic('alan:hunter22')],
  'a header without end': basic(`alan:hunter22${'x'.repeat(100_000)}`),
}

for (const [what, header] of Object.entries(bad)) {
  test(`refuses ${what}`, () => {
    const ctx = request({ headers: { Authorization: header } })
    assert.deepEqual(judge?.(ctx), refused)
    assert.deepEqual([...ctx.found], [['basic_auth.decision', 'block']])
  })
}

test('refuses a request without a header', () => assert.deepEqual(judge?.(request()), refused))

test('a module without credentials lets nobody in', () => {
  const { request: none } = compileBasicAuth({ credentials: [] })
  for (const header of [basic(':'), basic('alan:hunter22'), 'Basic ']) {
    assert.deepEqual(none?.(request({ headers: { Authorization: header } })), refused)
  }
})

test('lets in exactly what was agreed', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((each) => each.isWellFormed())
  fc.assert(
    fc.property(text, text, text, text, (username, password, otherName, otherPassword) => {
      fc.pre(!username.includes(':') && !otherName.includes(':'))
      const { request: own } = compileBasicAuth({ credentials: [{ username, password }] })
      const ask = (name: string, secret: string) =>
        own?.(request({ headers: { authorization: basic(`${name}:${secret}`) } })) === undefined
      assert.ok(ask(username, password))
      assert.equal(ask(otherName, otherPassword), otherName === username && otherPassword === password)
    }),
  )
})

test('the API cannot attach it to anything', () => {
  assert.ok(modules.some(({ name }) => name === 'basic_auth'))
  for (const place of ['tcp', 'tls', 'https', 'route'] as const) {
    assert.ok(!modulesAt(place).some(({ name }) => name === 'basic_auth'))
  }
})
