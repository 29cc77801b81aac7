/** The metadata of an identity provider: one SAML 2.0 entity that visitors can log in with. */
import { X509Certificate } from 'node:crypto'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { childrenOf, isNamed } from './elements.ts'
import { readXml, type XmlElement } from './xml.ts'
import { binding, METADATA, SIGNATURE } from './xml-names.ts'

/** The part of the metadata that logins need. */
export type IdentityProvider = Readonly<ReturnType<typeof readMetadata>>

/** SAML 2.0 metadata §2.2.1: the longest entity id, in characters. */
const MAX_ENTITY_ID = 1024

/** A provider that changes its key has two. Each certificate is tried with every answer. */
const MAX_CERTIFICATES = 10

/** In characters. */
const MAX_URL = 2048

/** In bits; shorter RSA keys are no longer safe. */
const MIN_KEY_BITS = 2048

/** Throws `BadValue` unless `xml` is one EntityDescriptor that describes an identity provider we can use. */
export function checkMetadata(field: string, xml: string): void {
  try {
    readMetadata(xml)
  } catch (error) {
    if (error instanceof BadInput) throw new BadValue(field, 'value', `\`${field}\` must ${error.message}`)
    throw error
  }
}

/** Throws `BadInput`; its message says what the document must be. */
export function readMetadata(xml: string) {
  const root = read(xml)
  if (!isNamed(root, METADATA, 'EntityDescriptor')) {
    throw new BadInput(
      `have an \`EntityDescriptor\` of the namespace \`${METADATA}\` as its root, that of one identity provider`,
    )
  }
  const entityId = root.attributes.get('entityID') ?? ''
  if (entityId.trim() === '' || entityId.length > MAX_ENTITY_ID) {
    throw new BadInput(
      `name its entity: an \`entityID\` of 1 to ${MAX_ENTITY_ID} characters on the \`EntityDescriptor\``,
    )
  }
  const [role, another] = childrenOf(root, METADATA, 'IDPSSODescriptor')
  if (!role || another) {
    throw new BadInput('describe an identity provider: one `IDPSSODescriptor` inside the `EntityDescriptor`')
  }
  // Where requests for a login go, by the redirect binding.
  const loginUrl = addressOf(role, 'SingleSignOnService', 'Location')
  if (loginUrl === undefined) {
    throw new BadInput(
      `say where visitors log in: a \`SingleSignOnService\` of the binding \`${binding.redirect}\` with an https URL`,
    )
  }
  // Where answers to its requests for a logout go, by the same binding; undefined when it has none.
  const logoutUrl =
    addressOf(role, 'SingleLogoutService', 'ResponseLocation') ?? addressOf(role, 'SingleLogoutService', 'Location')
  return { entityId, loginUrl, logoutUrl, certificates: certificatesOf(role) }
}

function read(xml: string): XmlElement {
  try {
    return readXml(xml)
  } catch (error) {
    if (error instanceof BadInput) throw new BadInput(`be XML that is well-formed and has no DTD; ${error.message}`)
    throw error
  }
}

/** The first URL of a service with the redirect binding. */
function addressOf(role: XmlElement, service: string, attribute: string): string | undefined {
  return childrenOf(role, METADATA, service)
    .filter(({ attributes }) => attributes.get('Binding') === binding.redirect)
    .map(({ attributes }) => attributes.get(attribute) ?? '')
    .find(isAddress)
}

/** Whether a URL may be used, by browsers or by us: https, or http on loopback, to try this out. */
export function isAddress(text: string): boolean {
  const url = text.length <= MAX_URL && /^https?:\/\/[^\s\\]+$/i.test(text) ? URL.parse(text) : null
  if (url?.username !== '' || url.password !== '' || url.hash !== '') return false
  return url.protocol === 'https:' || ['localhost', '[::1]', '127.0.0.1'].includes(url.hostname)
}

/** The certificates of keys for signing, or without a stated use. */
function certificatesOf(role: XmlElement): string[] {
  const written = childrenOf(role, METADATA, 'KeyDescriptor')
    .filter(({ attributes }) => (attributes.get('use') ?? 'signing') === 'signing')
    .flatMap((key) => childrenOf(key, SIGNATURE, 'KeyInfo'))
    .flatMap((info) => childrenOf(info, SIGNATURE, 'X509Data'))
    .flatMap((data) => childrenOf(data, SIGNATURE, 'X509Certificate'))
    .map(({ text }) => text.replace(/\s+/g, ''))
  const distinct = [...new Set(written)]
  if (distinct.length === 0 || distinct.length > MAX_CERTIFICATES) {
    throw new BadInput(
      `hold the certificates that the identity provider signs with: 1 to ${MAX_CERTIFICATES} \`X509Certificate\` of a \`KeyDescriptor\` for signing`,
    )
  }
  return distinct.map(pemOf)
}

/** The dates of a certificate are ignored: what counts is that the metadata names the key. */
function pemOf(base64: string): string {
  const { asymmetricKeyType, asymmetricKeyDetails } = certificateOf(base64).publicKey
  if (asymmetricKeyType !== 'rsa' || (asymmetricKeyDetails?.modulusLength ?? 0) < MIN_KEY_BITS) {
    throw new BadInput(`hold certificates of RSA keys of at least ${MIN_KEY_BITS} bits; others are refused`)
  }
  return certificateOf(base64).toString()
}

function certificateOf(base64: string): X509Certificate {
  try {
    return new X509Certificate(Buffer.from(base64, 'base64'))
  } catch {
    throw new BadInput('hold certificates that can be read: DER in base64, inside `X509Certificate`')
  }
}
