import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkAclRule, mayBindAddress, mayBindAnything, mayBindLabel, mayBindName } from './acl.ts'

/** Contract 2.3, rules 2 to 5. */
const taken = [
  '*',
  'bind:*',
  'bind:example.com',
  'bind:EXAMPLE.com.',
  'bind:bücher.example',
  'bind:*.example.com',
  'bind:1.tcp.example.com:20001',
  'bind:127.0.0.1:20001',
  'bind:[::1]:20001',
  'bind:app=web',
  'bind:*=web',
  'bind:app=*',
  'bind:*=*',
  'bind:größe=groß',
  'bind:a:b=c:d',
]

for (const rule of taken) {
  test(`accepts \`${rule}\``, () => {
    checkAclRule(rule)
  })
}

const refused = [
  '',
  ' *',
  '**',
  'bind',
  'bind:',
  'BIND:example.com',
  'bind: example.com',
  'bind:example.com ',
  ' bind:example.com',
  'deny:example.com',
  'bind:foo.*.com',
  'bind:f*.example.com',
  'bind:**',
  'bind:*.*',
  'bind:example.com:0',
  'bind:example.com:65536',
  'bind:example.com:port',
  'bind:http://example.com',
  'bind:=',
  'bind:app=',
  'bind:=web',
  'bind:a=b=c',
  'bind:a*=b',
  'bind:a=b*',
  'bind:a b=c',
  'bind:a=b\n',
  'bind:app=web\u00a0',
  'bind:exa_mple.com',
]

for (const rule of refused) {
  test(`refuses ${JSON.stringify(rule)}`, () => {
    assert.throws(() => checkAclRule(rule), { name: 'BadInput', message: /^(must|may|cannot) / })
  })
}

test('any text is accepted or refused with a sentence that can follow the name of its field', () => {
  const unit = fc.oneof(
    fc.constantFrom('*', ':', '=', '.', '[', ']', ' ', 'a', 'b', '1', '-'),
    fc.string({ unit: 'binary', maxLength: 1 }),
  )
  fc.assert(
    fc.property(
      fc.constantFrom('', 'bind:', 'bind:*.', 'bind:*='),
      fc.string({ unit, maxLength: 20 }),
      (head, tail) => {
        try {
          checkAclRule(head + tail)
        } catch (error) {
          assert.match(error instanceof Error ? `${error.name}: ${error.message}` : '', /^BadInput: (must|may|cannot) /)
        }
      },
    ),
    { numRuns: 5000 },
  )
})

/** the names are normalised, as they are when they are asked about. */
const names: readonly [acl: readonly string[], name: string, isAllowed: boolean][] = [
  [[], 'x.d.com', true],
  [['*'], 'x.d.com', true],
  [['bind:*'], 'x.d.com', true],
  [['bind:other.com', '*'], 'x.d.com', true],
  [['bind:*.d.com'], 'x.d.com', true],
  [['bind:*.d.com'], 'y.x.d.com', true],
  [['bind:*.d.com'], '*.d.com', true],
  [['bind:*.d.com'], '*.x.d.com', true],
  [['bind:*.d.com'], 'd.com', false],
  [['bind:*.d.com'], 'xd.com', false],
  [['bind:*.d.com'], 'x.d.com.evil', false],
  [['bind:*.x.d.com'], '*.d.com', false],
  [['bind:d.com'], 'd.com', true],
  [['bind:D.Com.'], 'd.com', true],
  [['bind:bücher.example'], 'xn--bcher-kva.example', true],
  [['bind:d.com'], 'x.d.com', false],
  [['bind:d.com'], '*.d.com', false],
  [['bind:a.com', 'bind:d.com'], 'd.com', true],
  [['bind:d.com:443'], 'd.com', false],
  [['bind:*=*'], 'd.com', false],
  [['bind:d.com=*'], 'd.com', false],
  [['nonsense', 'bind:..', 'bind:'], 'd.com', false],
]

for (const [acl, name, isAllowed] of names) {
  test(`${JSON.stringify(acl)} ${isAllowed ? 'allows' : 'forbids'} the name ${name}`, () => {
    assert.equal(mayBindName(acl, name), isAllowed)
  })
}

const addresses: readonly [acl: readonly string[], host: string, port: number, isAllowed: boolean][] = [
  [[], 'd.com', 20_001, true],
  [['bind:*'], 'd.com', 20_001, true],
  [['bind:D.com:20001'], 'd.com', 20_001, true],
  [['bind:d.com:20001'], 'd.com', 20_002, false],
  [['bind:d.com:20001'], 'e.com', 20_001, false],
  [['bind:d.com'], 'd.com', 20_001, false],
  [['bind:*.d.com'], 'x.d.com', 20_001, false],
  [['bind:[::1]:20001'], '[::1]', 20_001, true],
]

for (const [acl, host, port, isAllowed] of addresses) {
  test(`${JSON.stringify(acl)} ${isAllowed ? 'allows' : 'forbids'} the address ${host}:${port}`, () => {
    assert.equal(mayBindAddress(acl, { host, port }), isAllowed)
  })
}

const labels: readonly [acl: readonly string[], key: string, value: string, isAllowed: boolean][] = [
  [[], 'app', 'a', true],
  [['*'], 'app', 'a', true],
  [['bind:app=*'], 'app', 'a', true],
  [['bind:app=*'], 'dc', '1', false],
  [['bind:*=1'], 'dc', '1', true],
  [['bind:*=*'], 'dc', '1', true],
  [['bind:app=a'], 'app', 'A', false],
  [['bind:App=a'], 'app', 'a', false],
  [['bind:app=a'], 'app', '*', false],
  [['bind:app'], 'app', 'a', false],
]

for (const [acl, key, value, isAllowed] of labels) {
  test(`${JSON.stringify(acl)} ${isAllowed ? 'allows' : 'forbids'} the label ${key}=${value}`, () => {
    assert.equal(mayBindLabel(acl, key, value), isAllowed)
  })
}

test('only an empty list and rules that allow everything allow any bind', () => {
  for (const acl of [[], ['*'], ['bind:*'], ['bind:a.com', 'bind:*']]) assert.equal(mayBindAnything(acl), true)
  for (const acl of [['bind:a.com'], ['bind:*=*'], ['bind:*.com']]) assert.equal(mayBindAnything(acl), false)
})
