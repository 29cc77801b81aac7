/** Tunnel credentials: the authtokens that agents connect with. */

import { storedKind } from './resource.ts'
import { acl, checkAcl, description, metadata } from './resource-fields.ts'

/** The scope of claims for authtoken hashes. API keys have another one, so no token is good for both (D20). */
export const AUTHTOKENS = 'authtoken'

export const credentials = storedKind({
  kind: 'credential',
  noun: 'tunnel credential',
  about: 'Authtokens that agents connect with, optionally restricted by bind rules.',
  prefix: 'cr_',
  access: 'owner',
  mints: { field: 'token', scope: AUTHTOKENS },
  form: { description, metadata, acl },
  settle(fields) {
    checkAcl(fields.acl)
    return fields
  },
})
