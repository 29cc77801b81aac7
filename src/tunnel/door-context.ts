/** What every part of the agents' door works with. */
import type { Authenticating } from './authenticate.ts'
import type { FormerLabels } from './label-ids.ts'
import type { DoorLimits } from './limits.ts'
import type { Online } from './online.ts'

export interface DoorContext extends Authenticating {
  readonly online: Online
  /** The version of this server. */
  readonly version: string
  readonly formerLabels: FormerLabels
  readonly limits: DoorLimits
  /** Whether the IP restriction of agents admits an address; everybody when left out. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}

/** Where a connection comes from. */
export interface AgentPeer {
  readonly ip: string
  readonly port: number
}
