/** SSH certificate authorities: keys that sign SSH certificates and never leave this server. */
import { Type } from '../../lib/shape/type.ts'
import type { SshKeyChoice } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { Refusal } from '../../model/errors.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

/** The defaults. */
const usual = { curve: 'p256', bits: 4096 } as const

export const sshCertificateAuthorities = storedKind({
  kind: 'ssh_certificate_authority',
  about: 'Keys that sign SSH certificates. They are made here, encrypted at rest, and never shown.',
  prefix: 'sshca_',
  access: 'account',
  form: {
    description,
    metadata,
    private_key_type: Type.Enum(['ed25519', 'ecdsa', 'rsa'], {
      description: 'Kind of key to make.',
      default: 'ed25519',
    }),
    elliptic_curve: Type.Optional(
      Type.Enum(['p256', 'p384', 'p521'], { description: `Curve of an ECDSA key; \`${usual.curve}\` by default.` }),
    ),
    key_size: Type.Optional(
      Type.Enum([2048, 3072, 4096], { description: `Bits of an RSA key; ${usual.bits} by default.` }),
    ),
  },
  fixed: ['private_key_type', 'elliptic_curve', 'key_size'],
  hides: ['private_key_type', 'elliptic_curve', 'key_size'],
  shows: {
    public_key: Type.String({ description: 'The key that servers and clients must trust, as an OpenSSH line.' }),
    key_type: Type.Enum(['ed25519', 'ecdsa', 'rsa'], { description: 'Kind of key.' }),
  },
  secrets: ['private_key'],
  async make({ elliptic_curve, key_size, private_key_type, ...fields }, { keyPair }) {
    const made = await keyPair(choiceOf(private_key_type, elliptic_curve, key_size))
    return { ...fields, key_type: private_key_type, public_key: made.publicLine, private_key: made.privatePem }
  },
})

function choiceOf(
  type: SshKeyChoice['type'],
  curve: 'p256' | 'p384' | 'p521' | undefined,
  bits: number | undefined,
): SshKeyChoice {
  if (curve !== undefined && type !== 'ecdsa') {
    throw new Refusal('CURVE_NOT_ALLOWED', `\`elliptic_curve\` is for ECDSA keys; leave it out for \`${type}\``, {
      field: 'elliptic_curve',
    })
  }
  if (bits !== undefined && type !== 'rsa') {
    throw new Refusal('KEY_SIZE_NOT_ALLOWED', `\`key_size\` is for RSA keys; leave it out for \`${type}\``, {
      field: 'key_size',
    })
  }
  if (type === 'ecdsa') return { type, curve: curve ?? usual.curve }
  return type === 'rsa' ? { type, bits: bits ?? usual.bits } : { type }
}
