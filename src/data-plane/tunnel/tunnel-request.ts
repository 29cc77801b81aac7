/** The requests of a session, through any door: for an address of its own, or for visitors to its labels. */
import type { Secret } from '../../lib/secrets/secret.ts'

interface Served {
  /** Where traffic goes, for people. */
  readonly forwardsTo: string
  /** The protocol over a stream: `''`, `http1` or `http2`. */
  readonly forwardsProto: string
  readonly metadata: string
}

export interface BindRequest extends Served {
  /** The session's own id for it; `''` when the server chooses. */
  readonly id: string
  readonly proto: string
  /** The address and the modules, as agents spell them. */
  readonly opts: Readonly<Record<string, unknown>>
  /** The token of an earlier answer, to claim the same address. */
  readonly token: Secret
  readonly bindings: readonly string[]
  /** Whether others may share the address, if they ask for it too: `Extra.PoolingEnabled` of all official SDKs. */
  readonly poolingEnabled: boolean
  readonly name: string
  readonly description: string
}

export interface LabelRequest extends Served {
  readonly labels: Readonly<Record<string, string>>
}
