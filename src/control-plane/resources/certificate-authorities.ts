/** Certificate authorities: they sign the client certificates that mutual TLS requires. */
import { Type } from '../../lib/shape/type.ts'
import { MAX_CA_PEM_BYTES, readCaCertificates } from '../../lib/x509/certificate.ts'
import { certificatePrice } from '../../modules/certificate-price.ts'
import { storedKind } from './resource.ts'
import { description, metadata, readOr } from './resource-fields.ts'

export const certificateAuthorities = storedKind({
  kind: 'certificate_authority',
  about: 'CA certificates that mutual TLS checks client certificates against.',
  prefix: 'ca_',
  access: 'account',
  form: {
    description,
    metadata,
    ca_pem: Type.String({
      description: 'One or more CA certificates in PEM form, concatenated. The other fields describe the first.',
      maxBytes: MAX_CA_PEM_BYTES,
    }),
  },
  fixed: ['ca_pem'],
  shows: {
    subject_common_name: Type.String({ description: 'Common name of the subject.' }),
    not_before: Type.String({ description: 'Valid from, RFC 3339.' }),
    not_after: Type.String({ description: 'Valid until, RFC 3339.' }),
    key_usages: Type.Array(Type.String(), { description: 'Key usages of the certificate.' }),
    extended_key_usages: Type.Array(Type.String(), { description: 'Extended key usages of the certificate.' }),
  },
  settle: (fields) => ({ ...fields, ...describe(fields.ca_pem) }),
  price: ({ ca_pem }) => certificatePrice(ca_pem),
})

function describe(pem: string) {
  return readOr('BAD_CERTIFICATE', 'ca_pem', ':', () => readCaCertificates(pem).first)
}
