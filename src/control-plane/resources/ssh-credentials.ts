/** SSH credentials: uploaded public keys that start tunnels through the SSH gateway. */
import { Type } from '../../lib/shape/type.ts'
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { storedKind } from './resource.ts'
import { acl, checkAcl, description, metadata, readOr } from './resource-fields.ts'

/** The scope of claims for fingerprints of public keys, by which the gateway finds a credential. */
export const SSH_KEYS = 'ssh_key'

export const sshCredentials = storedKind({
  kind: 'ssh_credential',
  about: 'Uploaded public keys that may start tunnels through the SSH gateway, optionally restricted by bind rules.',
  prefix: 'sshcr_',
  access: 'owner',
  form: {
    description,
    metadata,
    acl,
    public_key: Type.String({
      description: 'Public key: an OpenSSH line, RFC 4716 or PEM. Ed25519, ECDSA, or RSA of 2048 to 8192 bits.',
      maxBytes: 16_384,
    }),
  },
  fixed: ['public_key'],
  settle(fields) {
    checkAcl(fields.acl)
    return { ...fields, fingerprint: fingerprint(fields.public_key) }
  },
  claims: (fields) => [
    {
      scope: SSH_KEYS,
      key: fields.fingerprint,
      taken: {
        code: 'PUBLIC_KEY_IN_USE',
        msg: 'another SSH credential has the same `public_key`; use that one or delete it first',
        field: 'public_key',
      },
    },
  ],
})

function fingerprint(publicKey: string): string {
  return readOr('BAD_PUBLIC_KEY', 'public_key', ':', () => readSshPublicKey(publicKey).fingerprint)
}
