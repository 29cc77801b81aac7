/** The library that verifies signatures, loaded on a thread for documents alone: that takes a tenth of a second. */
import type * as NodeSaml from '@node-saml/node-saml'

export async function loadLibrary(): Promise<typeof NodeSaml> {
  return import('@node-saml/node-saml')
}

/** Requests are known again by what is sealed in their relay state, and not by the library. */
export const noCache: NodeSaml.CacheProvider = {
  saveAsync: () => Promise.resolve(null),
  getAsync: () => Promise.resolve(null),
  removeAsync: () => Promise.resolve(null),
}
