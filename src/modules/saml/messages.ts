/** What we tell an identity provider: the metadata of a route, and messages through the browser. */
import { randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import type { SamlAddresses } from './addresses.ts'
import type { RequestKey } from './request-key.ts'
import { ASSERTION, binding, METADATA, PROTOCOL, SIGNATURE, status } from './xml-names.ts'

const ALGORITHM = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256'

const deflate = promisify(deflateRaw)
const signLater = promisify<string, Buffer, string, Buffer>(sign)

interface Sending {
  /** The URL at the provider. */
  readonly to: string
  readonly addresses: SamlAddresses
  readonly requestKey: RequestKey
  readonly relayState: string
  readonly now: number
}

interface LoginRequest {
  readonly id: string
  readonly nameIdFormat: string
  readonly isForced: boolean
}

/** The URL that asks the provider to log the visitor in. */
export function loginRequestUrl(sending: Sending, { id, nameIdFormat, isForced }: LoginRequest): Promise<string> {
  const { acs } = sending.addresses
  const force = isForced ? ' ForceAuthn="true"' : ''
  const attributes = `ProtocolBinding="${binding.post}" AssertionConsumerServiceURL="${escapeXml(acs)}"${force}`
  const policy = `<samlp:NameIDPolicy Format="${escapeXml(nameIdFormat)}" AllowCreate="true"/>`
  return signedUrl('SAMLRequest', message('AuthnRequest', id, attributes, policy, sending), sending)
}

/** The URL that tells the provider that its logout request was carried out. */
export function logoutAnswerUrl(sending: Sending, requestId: string): Promise<string> {
  const id = `_${randomBytes(20).toString('hex')}`
  const body = `<samlp:Status><samlp:StatusCode Value="${status.success}"/></samlp:Status>`
  return signedUrl(
    'SAMLResponse',
    message('LogoutResponse', id, `InResponseTo="${escapeXml(requestId)}"`, body, sending),
    sending,
  )
}

function message(name: string, id: string, attributes: string, body: string, { to, addresses, now }: Sending): string {
  return [
    `<samlp:${name} xmlns:samlp="${PROTOCOL}" xmlns:saml="${ASSERTION}" ID="${id}" Version="2.0"`,
    ` IssueInstant="${new Date(now).toISOString()}" Destination="${escapeXml(to)}" ${attributes}>`,
    `<saml:Issuer>${escapeXml(addresses.entityId)}</saml:Issuer>${body}</samlp:${name}>`,
  ].join('')
}

/**
 * SAML bindings §3.4: the redirect binding signs the query and not the XML. By SAML bindings §3.4.4.1 the signature covers these
 * parameters, in this order, encoded as in the URL. Node deflates and signs on its own threads.
 */
async function signedUrl(
  parameter: 'SAMLRequest' | 'SAMLResponse',
  xml: string,
  { to, relayState, requestKey }: Sending,
): Promise<string> {
  const deflated = await deflate(xml)
  const pairs = [
    [parameter, deflated.toString('base64')],
    ...(relayState === '' ? [] : [['RelayState', relayState] as const]),
    ['SigAlg', ALGORITHM],
  ] as const
  const signed = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  const signature = await signLater('sha256', Buffer.from(signed), requestKey.key.reveal())
  return `${to}${to.includes('?') ? '&' : '?'}${signed}&Signature=${encodeURIComponent(signature.toString('base64'))}`
}

interface OwnMetadata {
  readonly addresses: SamlAddresses
  /** In PEM. */
  readonly certificate: string
  readonly nameIdFormat: string
}

/** The metadata of a route, which identity providers read. */
export function ownMetadata({ addresses, certificate, nameIdFormat }: OwnMetadata): string {
  const { entityId, acs, logout } = addresses
  const base64 = certificate.replace(/-----[A-Z ]+-----|\s/g, '')
  const logoutService = (by: string): string => `<SingleLogoutService Binding="${by}" Location="${escapeXml(logout)}"/>`
  return `<?xml version="1.0" encoding="UTF-8"?>
<EntityDescriptor xmlns="${METADATA}" entityID="${escapeXml(entityId)}">
  <SPSSODescriptor AuthnRequestsSigned="true" WantAssertionsSigned="true" protocolSupportEnumeration="${PROTOCOL}">
    <KeyDescriptor use="signing">
      <KeyInfo xmlns="${SIGNATURE}"><X509Data><X509Certificate>${base64}</X509Certificate></X509Data></KeyInfo>
    </KeyDescriptor>
    ${logoutService(binding.redirect)}
    ${logoutService(binding.post)}
    <NameIDFormat>${escapeXml(nameIdFormat)}</NameIDFormat>
    <AssertionConsumerService Binding="${binding.post}" Location="${escapeXml(acs)}" index="0" isDefault="true"/>
  </SPSSODescriptor>
</EntityDescriptor>
`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for XML, between tags and in attributes. */
function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? '')
}
