import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { distinguishedName, writeCertificate } from '../../lib/x509/x509-writer.ts'
import { checkMetadata, readMetadata } from './metadata.ts'
import { makeRequestKey } from './request-key.ts'

const NAMESPACE = 'urn:oasis:names:tc:SAML:2.0:metadata'
const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect'
const POST = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST'

const [first, second] = [await makeRequestKey(Date.now()), await makeRequestKey(Date.now())]
const base64 = (pem: string): string => pem.replace(/-----[A-Z ]+-----/g, '')
const keyOf = (certificate: string, attributes = ''): string =>
  `<KeyDescriptor ${attributes}><d:KeyInfo xmlns:d="http://www.w3.org/2000/09/xmldsig#"><d:X509Data><d:X509Certificate>${certificate}</d:X509Certificate></d:X509Data></d:KeyInfo></KeyDescriptor>`
const KEY = keyOf(base64(first.certificate))
const service = (name: string, binding: string, location: string): string =>
  `<${name} Binding="${binding}" Location="${location}"/>`
const SSO = service('SingleSignOnService', REDIRECT, 'https://idp.example.com/sso?a=1&amp;b=2')

function entity(role: string, attributes = 'entityID="x"'): string {
  return `<EntityDescriptor xmlns="${NAMESPACE}" ${attributes}>${role}</EntityDescriptor>`
}
const idp = (inside: string): string => entity(`<IDPSSODescriptor>${inside}</IDPSSODescriptor>`)

test('accepts an entity with an identity provider, whatever else it holds', () => {
  for (const text of [
    idp(KEY + SSO),
    entity(`<SPSSODescriptor/><IDPSSODescriptor>${KEY}${SSO}</IDPSSODescriptor>`, 'entityID="urn:x" ID="_1"'),
    entity(`<IDPSSODescriptor>${KEY}${SSO}</IDPSSODescriptor>`, `entityID="${'x'.repeat(1024)}"`),
  ]) {
    checkMetadata('idp_metadata', text)
  }
})

test('reads the addresses of the redirect binding and the certificates for signing', () => {
  const text = idp(
    [
      keyOf(base64(second.certificate), 'use="encryption"'),
      keyOf(base64(first.certificate), 'use="signing"'),
      keyOf(base64(second.certificate)),
      KEY,
      service('SingleLogoutService', POST, 'https://idp.example.com/post'),
      service('SingleLogoutService', REDIRECT, 'https://idp.example.com/slo'),
      service('SingleSignOnService', POST, 'https://idp.example.com/post'),
      SSO,
      service('SingleSignOnService', REDIRECT, 'https://idp.example.com/second'),
    ].join(''),
  )
  assert.deepEqual(readMetadata(text), {
    entityId: 'x',
    loginUrl: 'https://idp.example.com/sso?a=1&b=2',
    logoutUrl: 'https://idp.example.com/slo',
    certificates: [first.certificate, second.certificate],
  })
  const elsewhere =
    '<SingleLogoutService Binding="B" Location="https://a.example.com/" ResponseLocation="https://b.example.com/"/>'
  assert.equal(
    readMetadata(idp(KEY + SSO + elsewhere.replace('"B"', `"${REDIRECT}"`))).logoutUrl,
    'https://b.example.com/',
  )
  assert.equal(readMetadata(idp(KEY + SSO)).logoutUrl, undefined)
})

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ecCertificate = writeCertificate(
  {
    serialNumber: Buffer.from([1]),
    issuer: distinguishedName([['commonName', 'x']]),
    subject: distinguishedName([['commonName', 'x']]),
    notBefore: Date.now(),
    notAfter: Date.now() + 1000,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    extensions: [],
  },
  privateKey,
)

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
  'two identity providers': [
    /one `IDPSSODescriptor`/,
    entity(`<IDPSSODescriptor>${KEY}${SSO}</IDPSSODescriptor>`.repeat(2)),
  ],
  'no address to log in at': [/SingleSignOnService/, idp(KEY)],
  'an address for another binding': [
    /SingleSignOnService/,
    idp(KEY + service('SingleSignOnService', POST, 'https://idp.example.com/sso')),
  ],
  'an address without https': [
    /https/,
    idp(KEY + service('SingleSignOnService', REDIRECT, 'http://idp.example.com/sso')),
  ],
  'an address that runs a script': [
    /https/,
    idp(KEY + service('SingleSignOnService', REDIRECT, 'javascript:alert(1)//https://idp.example.com')),
  ],
  'no certificate': [/certificates/, idp(SSO)],
  'a certificate for encryption alone': [
    /certificates/,
    idp(SSO + keyOf(base64(first.certificate), 'use="encryption"')),
  ],
  'too many certificates': [/1 to 10/, idp(SSO + Array.from({ length: 11 }, (_, i) => keyOf(`A${i}`)).join(''))],
  'a certificate that cannot be read': [/can be read/, idp(SSO + keyOf('AAAA'))],
  'a certificate of an elliptic curve': [/RSA/, idp(SSO + keyOf(base64(ecCertificate)))],
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
