/** What every part of the agents' door works with. */
import type { Authenticating } from './authenticate.ts'
import type { DoorLimits } from './limits.ts'
import type { Online } from './online.ts'

export interface DoorContext extends Authenticating {
  readonly online: Online
  /** The version of this server. */
  readonly version: string
  readonly limits: DoorLimits
  /** This data plane, and how many there are; agents may have a connection to each. */
  readonly planeId: string
  readonly planeCount: number
  /** Whether the IP restriction of agents admits an address; everybody when left out. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}

/** Where a connection comes from. */
export interface AgentPeer {
  readonly ip: string
  readonly port: number
}
