/** Finds SSH user certificates for the SSH gateway. */
import { readSshPublicKey } from '../../lib/ssh-keys/ssh-public-key.ts'
import { fieldsOf } from '../resources/resource.ts'
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
      const { ssh_certificate_authority_id: authorityId } = fieldsOf(sshUserCertificates, certificate)
      const authority = await reader.resource(sshCertificateAuthorities.kind, authorityId)
      if (!authority) return undefined
      const { public_key: key } = fieldsOf(sshCertificateAuthorities, authority)
      return { id: certificate.id, authorityBlob: readSshPublicKey(key).blob }
    },
    { withinMs: LOOKUP_MS },
  )
}
