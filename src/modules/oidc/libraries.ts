/** Loads the libraries for OpenID Connect, when an edge first needs them: a server without logins never does. */
import type * as Jose from 'jose'
import type * as OpenId from 'openid-client'

export interface Libraries {
  readonly openid: typeof OpenId
  readonly jose: typeof Jose
}

/** Set only when both have loaded: an import that failed, for want of descriptors for example, is retried by the next login. */
let loaded: Libraries | undefined

/** Loads them before the first login, which retries and reports if this fails. */
export function loadLibrariesAhead(): void {
  loadLibraries().catch(() => {})
}

export async function loadLibraries(): Promise<Libraries> {
  if (!loaded) {
    const [openid, jose] = await Promise.all([import('openid-client'), import('jose')])
    loaded = { openid, jose }
  }
  return loaded
}
