/** IP policies: named groups of rules that decide which addresses get in. */

import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const ipPolicies = storedKind({
  kind: 'ip_policy',
  noun: 'IP policy',
  about: 'Groups of rules that decide which source addresses get in. Deleting one deletes its rules.',
  prefix: 'ipp_',
  path: '/ip_policies',
  listKey: 'ip_policies',
  access: 'account',
  form: { description, metadata },
})
