import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkAclRule } from './acl.ts'

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
  test(`takes \`${rule}\``, () => {
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

test('any text is taken or refused with a sentence that goes behind the name of its field', () => {
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
