/** The common parts of SSH certificates for users and for hosts: their form, and how one is signed. */
import { createPrivateKey, randomBytes } from 'node:crypto'
import { timestamp } from '../../lib/clock.ts'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import {
  MAX_SSH_PRINCIPALS,
  makeSshCertificate,
  type SshCertificateFacts,
  sshCertificateDigest,
} from '../../lib/ssh-keys/ssh-certificate.ts'
import { publicLineOf } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { readRfc3339 } from '../../lib/text/rfc3339.ts'
import { Refusal } from '../../model/errors.ts'
import type { Mention } from '../../modules/module.ts'
import type { Making } from './resource.ts'
import { description, metadata, readOr } from './resource-fields.ts'
import { sshCertificateAuthorities } from './ssh-certificate-authorities.ts'

/** The fields of a certificate: who signs which key, for whom, and for how long. */
export const certificateForm = {
  description,
  metadata,
  ssh_certificate_authority_id: Type.String({
    description: 'The SSH certificate authority that signs.',
    maxBytes: 255,
  }),
  public_key: Type.String({
    description: 'The key to certify: an OpenSSH line, RFC 4716 or PEM.',
    maxBytes: 16_384,
  }),
  principals: Type.Array(Type.String({ minLength: 1, maxBytes: 255 }), {
    description:
      'The users or hosts that the certificate is for. If empty, OpenSSH accepts it for any host, and for no user.',
    maxItems: MAX_SSH_PRINCIPALS,
    default: [],
  }),
  valid_after: Type.Optional(Type.String({ description: 'Valid from, RFC 3339; now by default.', maxBytes: 64 })),
  valid_until: Type.Optional(Type.String({ description: 'Valid until, RFC 3339.', maxBytes: 64 })),
}

/** Fields that an update cannot change, since they are signed. */
export const signedFields = [
  'ssh_certificate_authority_id',
  'public_key',
  'principals',
  'valid_after',
  'valid_until',
] as const

export const certificateShows = {
  key_type: Type.Enum(['ed25519', 'ecdsa', 'rsa'], { description: 'Kind of the certified key.' }),
  valid_after: Type.String({ description: 'Valid from, RFC 3339.' }),
  valid_until: Type.String({ description: 'Valid until, RFC 3339.' }),
  certificate: Type.String({ description: 'The signed certificate, as the line of a `-cert.pub` file.' }),
}

interface SshCertificateFields {
  readonly ssh_certificate_authority_id: string
  readonly public_key: string
  readonly principals: readonly string[]
  readonly valid_after?: string
  readonly valid_until?: string
}

interface Signing extends Pick<SshCertificateFacts, 'kind' | 'criticalOptions' | 'extensions'> {
  /** The default validity, in milliseconds. */
  readonly usualMs: number
}

/** Signs a certificate, and returns what is stored beside the fields. A certificate is looked up by its `digest`. */
export async function signCertificate(
  fields: SshCertificateFields,
  { kind, criticalOptions, extensions, usualMs }: Signing,
  { id, now, fieldsOf }: Making,
) {
  const key = readOr('BAD_PUBLIC_KEY', 'public_key', ':', () => readSshPublicKey(fields.public_key))
  const { validAfter, validUntil } = validity(fields, now(), usualMs)
  const authority = await fieldsOf(authorityOf(fields))
  // Every authority has these fields.
  const { private_key: pem, public_key: line } = authority as { private_key: string; public_key: string }
  if (readSshPublicKey(line).fingerprint === key.fingerprint) {
    throw new BadValue('public_key', 'value', '`public_key` is that of the authority itself; send the key to certify')
  }
  const facts: SshCertificateFacts = {
    kind,
    serial: randomBytes(8).readBigUInt64BE(),
    // SSH servers log the key id, so it is the id of this certificate.
    keyId: id,
    principals: fields.principals,
    validAfter: BigInt(validAfter) / 1000n,
    validBefore: BigInt(validUntil) / 1000n,
    criticalOptions,
    extensions,
  }
  const signing = { authority: createPrivateKey(pem), nonce: randomBytes(32) }
  const blob = await makeSshCertificate(key.blob, facts, signing).catch((error: unknown) => {
    throw error instanceof BadInput ? new BadValue('principals', 'value', error.message) : error
  })
  return {
    key_type: key.type === 'ssh-rsa' ? 'rsa' : key.type === 'ssh-ed25519' ? 'ed25519' : 'ecdsa',
    valid_after: timestamp(validAfter),
    valid_until: timestamp(validUntil),
    certificate: publicLineOf(blob),
    digest: sshCertificateDigest(blob),
  }
}

/** The authority that a certificate names. */
export function authorityOf({ ssh_certificate_authority_id: id }: SshCertificateFields): Mention {
  return { field: 'ssh_certificate_authority_id', id, kinds: [sshCertificateAuthorities.kind] }
}

/** The last time that RFC 3339 can write, in milliseconds. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59)

/** In milliseconds; certificates have whole seconds. */
function validity({ valid_after, valid_until }: SshCertificateFields, now: number, usualMs: number) {
  const validAfter = time('valid_after', valid_after) ?? now
  const validUntil = time('valid_until', valid_until) ?? Math.min(validAfter + usualMs, LAST_MS)
  if (Math.floor(validUntil / 1000) <= Math.floor(validAfter / 1000)) {
    throw new Refusal(
      'BAD_VALIDITY',
      `the certificate would never be valid: \`valid_until\` (${timestamp(validUntil)}) must be later than \`valid_after\` (${timestamp(validAfter)})`,
      { field: 'valid_until' },
    )
  }
  return { validAfter, validUntil }
}

function time(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const millis = readOr('INVALID_VALUE', field, '', () => readRfc3339(text))
  if (millis < 0 || millis > LAST_MS) {
    throw new BadValue(field, 'value', `\`${field}\` must be a time from 1970 to 9999, in UTC`)
  }
  return millis
}
