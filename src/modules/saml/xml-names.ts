/** Names of SAML 2.0 and of XML signatures, as documents write them. */

export const METADATA = 'urn:oasis:names:tc:SAML:2.0:metadata'
export const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol'
export const ASSERTION = 'urn:oasis:names:tc:SAML:2.0:assertion'
export const SIGNATURE = 'http://www.w3.org/2000/09/xmldsig#'

export const binding = {
  redirect: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect',
  post: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
} as const

export const status = {
  success: 'urn:oasis:names:tc:SAML:2.0:status:Success',
  authnFailed: 'urn:oasis:names:tc:SAML:2.0:status:AuthnFailed',
  requestDenied: 'urn:oasis:names:tc:SAML:2.0:status:RequestDenied',
} as const

export const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer'

/** The accepted signature methods. SHA-1 is not among them, since it has collisions. */
export const signing = {
  signature: new Set([
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
  ]),
  digest: new Set(['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512']),
  canonicalization: new Set(['http://www.w3.org/2001/10/xml-exc-c14n#']),
  transform: new Set([
    'http://www.w3.org/2000/09/xmldsig#enveloped-signature',
    'http://www.w3.org/2001/10/xml-exc-c14n#',
  ]),
} as const
