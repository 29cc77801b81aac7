/** Finds SSH user certificates for the SSH gateway. */
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { sshCertificateAuthorities } from '../resources/ssh-certificate-authorities.ts'
import { SSH_USER_CERTIFICATES, sshUserCertificates } from '../resources/ssh-user-certificates.ts'
import type { Store } from '../store/store.ts'
import { LOOKUP_MS } from './find-agent-credentials.ts'

/** A certificate that was issued here and is not deleted. */
interface StoredSshCertificate {
  readonly id: string
  /** The public key of its authority, in wire form. */
  readonly authorityBlob: Buffer
}

/** The certificate with this digest; undefined when there is none. */
export async function findSshCertificate(store: Store, digest: string): Promise<StoredSshCertificate | undefined> {
  return store.read(
    async (reader) => {
      const id = await reader.holder(SSH_USER_CERTIFICATES, digest)
      const certificate = id === undefined ? undefined : await reader.resource(sshUserCertificates.kind, id)
      if (!certificate) return undefined
      // What is stored has passed the forms of its resources.
      const authorityId = certificate.fields.ssh_certificate_authority_id as string
      const authority = await reader.resource(sshCertificateAuthorities.kind, authorityId)
      if (!authority) return undefined
      return { id: certificate.id, authorityBlob: readSshPublicKey(authority.fields.public_key as string).blob }
    },
    { withinMs: LOOKUP_MS },
  )
}
