/** What the modules that log visitors in have in common: fields of their request forms, and scopes. */
import type { Static } from 'typebox'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { MAX_UINT32 } from '../../model/fields.ts'

/** The limits on the number and length of scopes keep the redirect to the provider under 8 KiB, which providers accept. */
export const MAX_SCOPES = 30
export const MAX_SCOPE_BYTES = 255

export const loginFields = {
  options_passthrough: Type.Boolean({
    default: false,
    description: 'Whether OPTIONS requests pass without authentication, as CORS preflights need.',
  }),
  cookie_prefix: Type.String({
    default: '',
    maxBytes: 64,
    pattern: '^[A-Za-z0-9.]*$',
    description:
      'Prefix of the names of the cookies, such as `__Host-<prefix>session`: letters, digits and dots. Empty: `postern.` is used.',
  }),
  inactivity_timeout: seconds('Seconds without a request after which a visitor must log in again; 0 for no limit.'),
  maximum_duration: seconds('Seconds after a login after which a visitor must log in again; 0 for no limit.'),
}

/** The fields of `loginFields`, as they are stored. */
export interface LoginConfig extends Static<ReturnType<typeof Type.Object<typeof loginFields>>> {
  /** Tells several logins of one route apart: letters, digits, `_` and `-`. The login of a module has none. */
  readonly scope?: string | undefined
}

export function seconds(description: string) {
  return Type.Integer({ default: 0, minimum: 0, maximum: MAX_UINT32, description })
}

export function scopeList(description: string) {
  return Type.Array(Type.String({ minLength: 1, maxBytes: MAX_SCOPE_BYTES }), {
    default: [],
    maxItems: MAX_SCOPES,
    description,
  })
}

/** Throws `BadValue` unless each is a scope-token of RFC 6749 §3.3. */
export function checkScopes(field: string, scopes: readonly string[]): void {
  for (const [i, scope] of scopes.entries()) {
    if (/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)) continue
    const at = `${field}[${i}]`
    throw new BadValue(
      at,
      'value',
      `\`${at}\` must be one scope of ASCII characters without spaces, quotes or backslashes; give each scope its own entry`,
    )
  }
}
