/** What a session may ask for, whatever carries it: an address of its own, or visitors that are sent to its labels. */
import type { Secret } from '../lib/secrets/secret.ts'

interface Served {
  /** Where traffic goes, for people. */
  readonly forwardsTo: string
  /** What to speak over a stream: `''`, `http1` or `http2`. */
  readonly forwardsProto: string
  readonly metadata: string
}

export interface BindRequest extends Served {
  /** How the session calls it; `''` leaves that to the server. */
  readonly id: string
  readonly proto: string
  /** The address, and what guards and changes traffic, as agents spell it. */
  readonly opts: Readonly<Record<string, unknown>>
  /** What an earlier answer gave, to claim the same address with. */
  readonly token: Secret
  readonly bindings: readonly string[]
  readonly name: string
  readonly description: string
}

export interface LabelRequest extends Served {
  readonly labels: Readonly<Record<string, string>>
}
