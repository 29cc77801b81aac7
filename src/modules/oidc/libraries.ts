/** The libraries of OpenID Connect: a server loads them when it starts, and other programs, which log nobody in, never. */
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
