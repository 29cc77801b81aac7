/** What all parts of the SSH gateway share. */
import type { PlaneContext } from '../../model/plane-context.ts'
import type { AgentCredential } from '../tunnel/interfaces.ts'
import type { Online } from '../tunnel/online-tunnels.ts'
import type { SshLimits } from './ssh-limits.ts'

export interface SshUserCertificate {
  readonly id: string
  readonly authorityBlob: Buffer
}

interface SshCredentials {
  /** The credential whose public key has this fingerprint; throws when the store is unavailable. */
  find(fingerprint: string): Promise<AgentCredential | undefined>
  /** The user certificate with this digest, and the public key of the authority that issued it; throws likewise. */
  certificate(digest: string): Promise<SshUserCertificate | undefined>
}

export interface SshContext extends Pick<PlaneContext, 'ids' | 'now' | 'log' | 'admits'> {
  readonly online: Online
  readonly credentials: SshCredentials
  readonly limits: SshLimits
}
