/** IP policies: named groups of rules that decide which addresses get in. */

import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

export const ipPolicies = storedKind({
  kind: 'ip_policy',
  about: 'Groups of rules that decide which source addresses get in. Deleting one deletes its rules.',
  prefix: 'ipp_',
  access: 'account',
  form: { description, metadata },
})
