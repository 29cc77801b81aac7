/** What every part of the door works with. */
import type { Authenticating } from './authenticate.ts'
import type { Binding } from './bind.ts'
import type { FormerLabels } from './label-ids.ts'
import type { Labelling } from './labels.ts'
import type { DoorLimits } from './limits.ts'

export interface DoorContext extends Authenticating, Binding, Labelling {
  readonly region: string
  /** Of this server. */
  readonly version: string
  readonly formerLabels: FormerLabels
  readonly limits: DoorLimits
  /** Whether the IP restriction of agents lets an address in; everybody when left out. */
  readonly admits?: (peer: { readonly ip: string }) => boolean
}

/** Where a connection comes from. */
export interface Peer {
  readonly ip: string
  readonly port: number
}
