/** API keys: they authenticate callers of this API. */

import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

/** The scope of claims for the token hashes of API keys. */
export const API_KEY_TOKENS = 'api_key_token'

export const apiKeys = storedKind({
  kind: 'api_key',
  about: 'Keys that authenticate to this API.',
  prefix: 'ak_',
  listKey: 'keys',
  access: 'owner',
  mints: { field: 'token', scope: API_KEY_TOKENS },
  form: { description, metadata },
})
