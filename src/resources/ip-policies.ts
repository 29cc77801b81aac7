/** IP policies: named groups of rules that decide which addresses get in. */
import { description, metadata } from './fields.ts'
import { stored } from './resource.ts'

export const ipPolicies = stored({
  kind: 'ip_policy',
  noun: 'IP policy',
  about: 'Groups of rules that decide which source addresses get in. Deleting one deletes its rules.',
  prefix: 'ipp_',
  path: '/ip_policies',
  listKey: 'ip_policies',
  access: 'account',
  form: { description, metadata },
})
