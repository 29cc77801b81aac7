/** What of a document is signed: the library verifies, and gives back the very bytes that the signature covers. */
import { BadInput } from '../../lib/shape/bad-input.ts'
import { loadLibrary, noCache } from './library.ts'

/** The assertion of a response, as XML, when it or the response is signed by one of the keys; undefined otherwise. */
export async function signedAssertion(xml: string, certificates: readonly string[]): Promise<string | undefined> {
  const saml = await verifier(certificates)
  try {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: Buffer.from(xml).toString('base64') })
    return profile?.getAssertionXml?.()
  } catch (error) {
    // Its messages quote the document. The shape of that was found good, so what is left are times and the signature.
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
  const { SAML } = await loadLibrary()
  return new SAML({
    idpCert: [...certificates],
    // Whom it is for, and when, is looked at in what comes out: by our clock, and for each name of an edge.
    issuer: 'unused',
    callbackUrl: 'https://unused.invalid',
    audience: false,
    acceptedClockSkewMs: -1,
    // One of the two is always needed: the library then takes what that one covers, and nothing else.
    wantAuthnResponseSigned: false,
    wantAssertionsSigned: false,
    cacheProvider: noCache,
  })
}
