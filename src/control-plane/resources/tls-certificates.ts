/** TLS certificates: uploaded with their chain and private key, and served for the names that use them. */
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { MAX_PRIVATE_KEY_BYTES } from '../../lib/x509/private-key.ts'
import {
  BadTlsCertificate,
  MAX_TLS_PEM_BYTES,
  readTlsCertificate,
  type TlsCertificate,
} from '../../lib/x509/tls-certificate.ts'
import { type ErrorCode, Refusal } from '../../model/errors.ts'
import { readNames } from '../../model/hostport.ts'
import { certificatePrice } from '../../modules/certificate-price.ts'
import { type Fields, fieldsOf, storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

const text = (about: string) => Type.String({ description: about })
const texts = (about: string) => Type.Array(Type.String(), { description: about })

export const tlsCertificates = storedKind({
  kind: 'tls_certificate',
  about:
    'Certificates with their private keys, which are encrypted at rest and never shown. You upload them, or this server gets them from an authority.',
  prefix: 'cert_',
  access: 'account',
  form: {
    description,
    metadata,
    certificate_pem: Type.String({
      description: 'The certificate in PEM form, followed by its chain: each certificate issued the one before it.',
      maxBytes: MAX_TLS_PEM_BYTES,
    }),
    private_key_pem: Type.String({
      description:
        'Its private key in PEM form, without a passphrase: RSA of 2048 to 4096 bits, ECDSA P-256 or P-384, or Ed25519.',
      maxBytes: MAX_PRIVATE_KEY_BYTES,
    }),
  },
  hides: ['private_key_pem'],
  secrets: ['private_key_pem'],
  shows: {
    subject_common_name: text('Common name of the subject.'),
    subject_organization: text('Organization of the subject.'),
    subject_organizational_unit: text('Organizational unit of the subject.'),
    subject_locality: text('Locality of the subject.'),
    subject_province: text('State or province of the subject.'),
    subject_country: text('Country of the subject.'),
    subject_alternative_names: closedObject(
      { dns_names: texts('DNS names.'), ips: texts('IP addresses.') },
      { description: 'The hosts that the certificate is for.' },
    ),
    issued_at: nullable(text('When it was issued by this server, RFC 3339; null for one that was uploaded.')),
    not_before: text('Valid from, RFC 3339.'),
    not_after: text('Valid until, RFC 3339.'),
    key_usages: texts('Key usages of the certificate.'),
    extended_key_usages: texts('Extended key usages of the certificate.'),
    private_key_type: Type.Enum(['rsa', 'ecdsa', 'ed25519'], { description: 'Kind of key.' }),
    issuer_common_name: text('Common name of the issuer.'),
    serial_number: text('Serial number in hex.'),
  },
  settle: (fields) => ({
    ...fields,
    ...describe(read(fields.certificate_pem, fields.private_key_pem)),
    // Even when it replaces a certificate that this server got from an authority: from then on it counts as uploaded.
    ...UPLOADED,
  }),
  // A renewed certificate replaces the one before, with the same key or a new one, and is served at once.
  renews: ['certificate_pem', 'private_key_pem'],
  actions: [{ name: 'renew', about: 'Renew an issued TLS certificate now' }],
  columns: ['subject_alternative_names.dns_names', 'not_after', 'issuer_common_name'],
  price: ({ certificate_pem, private_key_pem }) =>
    certificatePrice(certificate_pem) + certificatePrice(private_key_pem),
})

/** The normalised host names of a certificate; its other names are not served. */
export function namesOf(stored: { readonly fields: Fields }): string[] {
  return readNames(fieldsOf(tlsCertificates, stored).subject_alternative_names.dns_names)
}

/** For a certificate that this server got from an authority: when, and for which name. */
interface Issuing {
  readonly issued_at: string | null
  readonly issued_for: string | null
}

const UPLOADED: Issuing = { issued_at: null, issued_for: null }

/** The fields of a certificate that this server got for a name; throws `Refusal` when it cannot be used. */
export function issuedCertificate(pair: { cert: string; key: string }, issuing: Issuing): Fields {
  const { description, metadata, cert, key } = { description: ISSUED, metadata: '', ...pair }
  const fields = { description, metadata, certificate_pem: cert, private_key_pem: key }
  return { ...fields, ...describe(read(cert, key)), ...issuing }
}

const ISSUED = 'Ordered from an authority by this server, and renewed automatically.'

const faults: Readonly<Record<BadTlsCertificate['part'], { code: ErrorCode; field: string }>> = {
  certificate: { code: 'BAD_TLS_CERTIFICATE', field: 'certificate_pem' },
  chain: { code: 'BAD_CERTIFICATE_CHAIN', field: 'certificate_pem' },
  key: { code: 'BAD_PRIVATE_KEY', field: 'private_key_pem' },
  pair: { code: 'PRIVATE_KEY_MISMATCH', field: 'private_key_pem' },
}

function read(certificatePem: string, privateKeyPem: string): TlsCertificate {
  try {
    return readTlsCertificate(certificatePem, privateKeyPem)
  } catch (cause) {
    if (!(cause instanceof BadTlsCertificate)) throw cause
    const { code, field } = faults[cause.part]
    throw new Refusal(code, `\`${field}\`: ${cause.message}`, { field, cause })
  }
}

function describe({ subject, dnsNames, ips, ...certificate }: TlsCertificate) {
  return {
    subject_common_name: subject.commonName,
    subject_organization: subject.organization,
    subject_organizational_unit: subject.organizationalUnit,
    subject_locality: subject.locality,
    subject_province: subject.province,
    subject_country: subject.country,
    subject_alternative_names: { dns_names: dnsNames, ips },
    not_before: certificate.notBefore,
    not_after: certificate.notAfter,
    key_usages: certificate.keyUsages,
    extended_key_usages: certificate.extendedKeyUsages,
    private_key_type: certificate.privateKeyType,
    issuer_common_name: certificate.issuerCommonName,
    serial_number: certificate.serialNumber,
  }
}
