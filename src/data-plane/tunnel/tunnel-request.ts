/** The requests of a session, through any door: for an address of its own, or for visitors to its labels. */
import type { BindMessage } from '../../link/wire/messages/bind.ts'

type Served = Pick<BindMessage, 'forwardsTo' | 'forwardsProto' | 'metadata'>

export type BindRequest = Served &
  Pick<BindMessage, 'id' | 'proto' | 'opts' | 'token' | 'bindings' | 'poolingEnabled' | 'name' | 'description'>

export interface LabelRequest extends Served {
  readonly labels: Readonly<Record<string, string>>
}
