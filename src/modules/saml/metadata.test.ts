import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkMetadata } from './metadata.ts'

const NAMESPACE = 'urn:oasis:names:tc:SAML:2.0:metadata'

test('takes an entity with an identity provider, whatever else it holds', () => {
  const texts = [
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><IDPSSODescriptor/></EntityDescriptor>`,
    `<m:EntityDescriptor xmlns:m="${NAMESPACE}" entityID="urn:x" ID="_1"><m:SPSSODescriptor/><m:IDPSSODescriptor/></m:EntityDescriptor>`,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="${'x'.repeat(1024)}"><n:IDPSSODescriptor xmlns:n="${NAMESPACE}"/></EntityDescriptor>`,
  ]
  for (const text of texts) checkMetadata('idp_metadata', text)
})

const refused: Record<string, readonly [message: RegExp, text: string]> = {
  'what is no XML': [/well-formed.*line 1/, 'https://idp.example.com/metadata'],
  'a DTD': [
    /no DTD/,
    `<!DOCTYPE x><EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><IDPSSODescriptor/></EntityDescriptor>`,
  ],
  'a root without namespace': [/as its root/, '<EntityDescriptor entityID="x"><IDPSSODescriptor/></EntityDescriptor>'],
  'a root of another namespace': [
    /as its root/,
    '<EntityDescriptor xmlns="urn:x" entityID="x"><IDPSSODescriptor/></EntityDescriptor>',
  ],
  'the metadata of many': [
    /as its root/,
    `<EntitiesDescriptor xmlns="${NAMESPACE}"><EntityDescriptor entityID="x"><IDPSSODescriptor/></EntityDescriptor></EntitiesDescriptor>`,
  ],
  'an entity without a name': [
    /entityID/,
    `<EntityDescriptor xmlns="${NAMESPACE}"><IDPSSODescriptor/></EntityDescriptor>`,
  ],
  'an empty name': [
    /entityID/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID=" "><IDPSSODescriptor/></EntityDescriptor>`,
  ],
  'a name of another case': [
    /entityID/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityId="x"><IDPSSODescriptor/></EntityDescriptor>`,
  ],
  'a name in a namespace': [
    /entityID/,
    `<m:EntityDescriptor xmlns:m="${NAMESPACE}" m:entityID="x"><m:IDPSSODescriptor/></m:EntityDescriptor>`,
  ],
  'a name that is too long': [
    /1 to 1024/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="${'x'.repeat(1025)}"><IDPSSODescriptor/></EntityDescriptor>`,
  ],
  'a service provider': [
    /IDPSSODescriptor/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><SPSSODescriptor/></EntityDescriptor>`,
  ],
  'an identity provider of another namespace': [
    /IDPSSODescriptor/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><IDPSSODescriptor xmlns=""/></EntityDescriptor>`,
  ],
  'an identity provider further in': [
    /IDPSSODescriptor/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><Extensions><IDPSSODescriptor/></Extensions></EntityDescriptor>`,
  ],
  'an identity provider in a comment': [
    /IDPSSODescriptor/,
    `<EntityDescriptor xmlns="${NAMESPACE}" entityID="x"><!-- <IDPSSODescriptor/> --></EntityDescriptor>`,
  ],
}

for (const [what, [message, text]] of Object.entries(refused)) {
  test(`refuses ${what}`, () => {
    assert.throws(() => checkMetadata('saml.idp_metadata', text), {
      field: 'saml.idp_metadata',
      kind: 'value',
      message,
    })
  })
}
