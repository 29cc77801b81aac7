/** The requests of a session, through any listener: for an address of its own, or for visitors to its labels. */
import type { BindMessage } from '../../link/wire/messages/bind.ts'

/** Its id is the session's own for it; `''` when the server chooses. SSH clients ask in the form of agents too. */
export type BindRequest = BindMessage

export interface LabelRequest extends Pick<BindMessage, 'forwardsTo' | 'forwardsProto' | 'metadata'> {
  readonly labels: Readonly<Record<string, string>>
}
