/** Verifies signatures with the library, which returns exactly the part of a document that a signature covers. */
import type { CacheProvider } from '@node-saml/node-saml'
import { BadInput } from '../../lib/shape/bad-input.ts'

/** The assertion of a response as XML, if it or the response is signed by one of the keys; undefined otherwise. */
export async function signedAssertion(xml: string, certificates: readonly string[]): Promise<string | undefined> {
  const saml = await verifier(certificates)
  try {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: Buffer.from(xml).toString('base64') })
    return profile?.getAssertionXml?.()
  } catch (error) {
    // Messages of the library quote the document. Its shape was checked, so only times and the signature can be wrong.
    if (error instanceof Error && /^Error parsing \w+: /.test(error.message))
      throw new BadInput('a time is missing or wrong')
    return undefined
  }
}

/** Whether a whole document, whose root has a signature, is signed by one of the keys. */
export async function isSignedRequest(xml: string, certificates: readonly string[]): Promise<boolean> {
  const saml = await verifier(certificates)
  try {
    const { loggedOut } = await saml.validatePostRequestAsync({ SAMLRequest: Buffer.from(xml).toString('base64') })
    return loggedOut
  } catch {
    return false
  }
}

async function verifier(certificates: readonly string[]) {
  // Only threads for documents load the library, since that takes a tenth of a second.
  const { SAML } = await import('@node-saml/node-saml')
  return new SAML({
    idpCert: [...certificates],
    // We check audience and times ourselves afterwards, by our clock and for each name of an edge.
    issuer: 'unused',
    callbackUrl: 'https://unused.invalid',
    audience: false,
    acceptedClockSkewMs: -1,
    // With both false, the library needs one of the two signatures, and returns only what that one covers.
    wantAuthnResponseSigned: false,
    wantAssertionsSigned: false,
    cacheProvider: noCache,
  })
}

/** The library need not remember requests: the sealed relay state identifies them. */
const noCache: CacheProvider = {
  saveAsync: () => Promise.resolve(null),
  getAsync: () => Promise.resolve(null),
  removeAsync: () => Promise.resolve(null),
}
