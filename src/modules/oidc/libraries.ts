/** Loads the libraries for OpenID Connect. A server does so when it starts; other commands, which need no logins, never. */
import type * as Jose from 'jose'
import type * as OpenId from 'openid-client'

export interface Libraries {
  readonly openid: typeof OpenId
  readonly jose: typeof Jose
}

export async function loadLibraries(): Promise<Libraries> {
  const [openid, jose] = await Promise.all([import('openid-client'), import('jose')])
  return { openid, jose }
}
