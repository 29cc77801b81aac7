import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGroups, readPerson } from './attributes.ts'

const of = (attributes: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(attributes).map(([name, values]) => ({ name, values }))

test('reads a user by the attribute names that providers use', () => {
  const said = [
    { mail: ['ada@example.com'], displayName: ['Ada'], uid: ['al'] },
    {
      'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress': ['ada@example.com'],
      'http://schemas.microsoft.com/identity/claims/displayname': ['Ada'],
      'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name': ['al'],
    },
    {
      'urn:oid:0.9.2342.19200300.100.1.3': ['ada@example.com'],
      'urn:oid:2.16.840.1.113730.3.1.241': ['Ada'],
      'urn:oid:0.9.2342.19200300.100.1.1': ['al'],
    },
  ]
  for (const each of said) {
    assert.deepEqual(readPerson('id-1', of(each)), {
      id: 'id-1',
      name: 'Ada',
      email: 'ada@example.com',
      username: 'al',
    })
  }
  assert.deepEqual(readPerson('id-1', []), { id: 'id-1', name: '', email: '', username: '' })
})

test('values that are too long or hold control characters are left out', () => {
  const user = readPerson('id-1', of({ mail: [`${'x'.repeat(254)}@`], displayName: ['A\nB'], uid: ['x'.repeat(256)] }))
  assert.deepEqual(user, { id: 'id-1', name: '', email: '', username: '' })
})

test('an empty or long name, or one with control characters, is no id', () => {
  assert.ok(readPerson('x'.repeat(256), []))
  for (const name of ['', 'x'.repeat(257), 'a\0b', 'a\nb']) assert.equal(readPerson(name, []), undefined)
})

test('groups are read from all attributes that name groups', () => {
  const attributes = of({ Groups: ['a', 'b'], memberOf: ['cn=c,dc=example'], role: ['admin'], email: ['d'] })
  assert.deepEqual([...readGroups(attributes)], ['a', 'b', 'cn=c,dc=example'])
})
