/** The requests of a session, through any door: for an address of its own, or for visitors to its labels. */
import type { BindMessage } from '../../link/wire/messages/bind.ts'

interface Served {
  /** Where traffic goes, for people. */
  readonly forwardsTo: string
  /** The protocol over a stream: `''`, `http1` or `http2`. */
  readonly forwardsProto: string
  readonly metadata: string
}

export type BindRequest = Served &
  Pick<BindMessage, 'id' | 'proto' | 'opts' | 'token' | 'bindings' | 'poolingEnabled' | 'name' | 'description'>

export interface LabelRequest extends Served {
  readonly labels: Readonly<Record<string, string>>
}
