/** What all parts of the SSH gateway share. */
import type { Authenticating } from '../tunnel/authenticate-agent.ts'
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

export interface SshContext extends Pick<Authenticating, 'ids' | 'now' | 'log'> {
  readonly online: Online
  readonly credentials: SshCredentials
  readonly limits: SshLimits
  /** Whether the IP restriction of agents admits an address; without it everybody is admitted. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}
