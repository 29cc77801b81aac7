/** What we send to an identity provider, through the browser: signed, by the redirect binding. */
import type { SamlConfig } from '@node-saml/node-saml'
import type { Addresses } from './addresses.ts'
import { loadLibrary, noCache } from './library.ts'
import type { IdentityProvider } from './metadata.ts'
import type { RequestKey } from './request-key.ts'

export interface Ends {
  readonly provider: IdentityProvider
  readonly addresses: Addresses
  readonly requestKey: RequestKey
}

export interface LoginRequest {
  readonly id: string
  readonly relayState: string
  readonly nameIdFormat: string
  readonly isForced: boolean
}

/** The address that asks the provider to log the visitor in. */
export async function loginRequestUrl(
  ends: Ends,
  { id, relayState, nameIdFormat, isForced }: LoginRequest,
): Promise<string> {
  const { SAML } = await loadLibrary()
  const saml = new SAML({
    ...optionsOf(ends),
    generateUniqueId: () => id,
    identifierFormat: nameIdFormat,
    forceAuthn: isForced,
  })
  return saml.getAuthorizeUrlAsync(relayState, undefined, {})
}

/** The address that tells the provider what became of its request to log a user out. */
export async function logoutAnswerUrl(
  ends: Ends & { readonly logoutUrl: string },
  { requestId, relayState, isDone }: { requestId: string; relayState: string; isDone: boolean },
): Promise<string> {
  const { SAML } = await loadLibrary()
  const saml = new SAML({ ...optionsOf(ends), logoutUrl: ends.logoutUrl })
  // Of the profile of a user, the library reads the id of the request alone.
  const request = { ID: requestId } as Parameters<typeof saml.getLogoutResponseUrlAsync>[0]
  return saml.getLogoutResponseUrlAsync(request, relayState, {}, isDone)
}

function optionsOf({ provider, addresses, requestKey }: Ends): SamlConfig {
  return {
    entryPoint: provider.loginUrl,
    idpCert: [...provider.certificates],
    issuer: addresses.entityId,
    callbackUrl: addresses.acs,
    privateKey: requestKey.key.reveal(),
    signatureAlgorithm: 'sha256',
    // How a user proves who it is, is the business of the provider.
    disableRequestedAuthnContext: true,
    cacheProvider: noCache,
  }
}
