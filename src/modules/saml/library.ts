/** The library that speaks SAML, loaded when the first route needs it: most servers log nobody in this way. */
import type * as NodeSaml from '@node-saml/node-saml'

export async function loadLibrary(): Promise<typeof NodeSaml> {
  return import('@node-saml/node-saml')
}

/** Requests are remembered by what is sealed in their relay state, and not by the library. */
export const noCache: NodeSaml.CacheProvider = {
  saveAsync: () => Promise.resolve(null),
  getAsync: () => Promise.resolve(null),
  removeAsync: () => Promise.resolve(null),
}
