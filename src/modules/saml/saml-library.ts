/** The library that verifies signatures. Only threads for documents load it, since that takes a tenth of a second. */
import type * as NodeSaml from '@node-saml/node-saml'

export async function loadLibrary(): Promise<typeof NodeSaml> {
  return import('@node-saml/node-saml')
}

/** The library need not remember requests: the sealed relay state identifies them. */
export const noCache: NodeSaml.CacheProvider = {
  saveAsync: () => Promise.resolve(null),
  getAsync: () => Promise.resolve(null),
  removeAsync: () => Promise.resolve(null),
}
