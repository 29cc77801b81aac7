/** The metadata of a route, which identity providers read. */
import type { SamlAddresses } from './addresses.ts'
import { escaped } from './escaped.ts'
import { binding, METADATA, PROTOCOL, SIGNATURE } from './xml-names.ts'

interface OwnMetadata {
  readonly addresses: SamlAddresses
  /** In PEM. */
  readonly certificate: string
  readonly nameIdFormat: string
}

export function ownMetadata({ addresses, certificate, nameIdFormat }: OwnMetadata): string {
  const { entityId, acs, logout } = addresses
  const base64 = certificate.replace(/-----[A-Z ]+-----|\s/g, '')
  const logoutService = (by: string): string => `<SingleLogoutService Binding="${by}" Location="${escaped(logout)}"/>`
  return `<?xml version="1.0" encoding="UTF-8"?>
<EntityDescriptor xmlns="${METADATA}" entityID="${escaped(entityId)}">
  <SPSSODescriptor AuthnRequestsSigned="true" WantAssertionsSigned="true" protocolSupportEnumeration="${PROTOCOL}">
    <KeyDescriptor use="signing">
      <KeyInfo xmlns="${SIGNATURE}"><X509Data><X509Certificate>${base64}</X509Certificate></X509Data></KeyInfo>
    </KeyDescriptor>
    ${logoutService(binding.redirect)}
    ${logoutService(binding.post)}
    <NameIDFormat>${escaped(nameIdFormat)}</NameIDFormat>
    <AssertionConsumerService Binding="${binding.post}" Location="${escaped(acs)}" index="0" isDefault="true"/>
  </SPSSODescriptor>
</EntityDescriptor>
`
}
