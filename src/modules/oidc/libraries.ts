/** Loads the libraries for OpenID Connect, when an edge first needs them: a server without logins does without. */
import type * as Jose from 'jose'
import type * as OpenId from 'openid-client'

export interface Libraries {
  readonly openid: typeof OpenId
  readonly jose: typeof Jose
}

let loading: Promise<Libraries> | undefined

/** Loads them while nobody waits; whoever logs in hears of a failure. */
export function loadLibrariesAhead(): void {
  loadLibraries().catch(() => {})
}

export function loadLibraries(): Promise<Libraries> {
  loading ??= Promise.all([import('openid-client'), import('jose')]).then(([openid, jose]) => ({ openid, jose }))
  return loading
}
