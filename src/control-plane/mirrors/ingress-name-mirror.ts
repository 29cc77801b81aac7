/** Sends a data plane the names of agent ingresses, at first and whenever one changes. */

import type { IngressName, IngressNameChange } from '../../link/planes/plane-calls.ts'
import { readName } from '../../model/hostport.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'
import { StoredParts } from './stored-parts.ts'

export class IngressNameFeed implements Followed {
  readonly #stored: StoredParts<IngressName>
  readonly #send: (change: IngressNameChange) => void

  constructor(store: Store, send: (change: IngressNameChange) => void) {
    this.#stored = new StoredParts({ store, kinds: [agentIngresses.kind], partOf })
    this.#send = send
  }

  async load(): Promise<void> {
    await this.#stored.load()
    // Sent even when there are none: the plane may have some of an earlier control plane.
    this.#send({ isAll: true, removed: [], set: [...this.#stored.byId.values()] })
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const change = await this.#stored.apply(changes)
    if (!change) return
    const set = change.after.map(([, each]) => each)
    this.#send({ isAll: false, removed: change.before.map(([, { name }]) => name), set })
  }
}

// What is stored has passed the form of its resource.
function partOf({ fields }: StoredResource): IngressName {
  return { name: readName(String(fields.domain)), isPublic: Boolean(fields.certificate_management_policy) }
}
