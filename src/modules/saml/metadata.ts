/** The metadata of an identity provider: one SAML 2.0 entity that visitors can log in with. */
import { BadInput } from '../../lib/bad-input.ts'
import { BadValue } from '../../lib/check.ts'
import { readXml, type XmlElement } from './xml.ts'

const NAMESPACE = 'urn:oasis:names:tc:SAML:2.0:metadata'
/** Of SAML 2.0 metadata §2.2.1, in characters. */
const MAX_ENTITY_ID = 1024

/** Throws `BadValue` unless `xml` is one EntityDescriptor that describes an identity provider. */
export function checkMetadata(field: string, xml: string): void {
  const bad = (must: string): BadValue => new BadValue(field, 'value', `\`${field}\` must ${must}`)
  const root = read(xml, bad)
  if (!isMetadata(root, 'EntityDescriptor')) {
    throw bad(
      `have an \`EntityDescriptor\` of the namespace \`${NAMESPACE}\` as its root, that of one identity provider`,
    )
  }
  const entityId = root.attributes.get('entityID') ?? ''
  if (entityId.trim() === '' || entityId.length > MAX_ENTITY_ID) {
    throw bad(`name its entity: an \`entityID\` of 1 to ${MAX_ENTITY_ID} characters on the \`EntityDescriptor\``)
  }
  if (!root.children.some((child) => isMetadata(child, 'IDPSSODescriptor'))) {
    throw bad('describe an identity provider: an `IDPSSODescriptor` inside the `EntityDescriptor`')
  }
}

function isMetadata({ namespace, name }: XmlElement, expected: string): boolean {
  return namespace === NAMESPACE && name === expected
}

function read(xml: string, bad: (must: string) => BadValue): XmlElement {
  try {
    return readXml(xml)
  } catch (error) {
    if (error instanceof BadInput) throw bad(`be XML that is well-formed and has no DTD; ${error.message}`)
    throw error
  }
}
