/**
 * Ends sessions whose credential is no longer valid: it was deleted, or its owner was deleted or made inactive (D25,
 * D65).
 */

import { AgentCredentials } from '../records/find-agent-credentials.ts'
import { botUsers } from '../resources/bot-users.ts'
import { credentials } from '../resources/credentials.ts'
import { sshCredentials } from '../resources/ssh-credentials.ts'
import { users } from '../resources/users.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'

/** Lists and ends live sessions by their credentials. */
export interface Sessions {
  /** The ids of the credentials that started a live session. */
  credentialsInUse(): ReadonlySet<string>
  endSessionsOf(credentialId: string, reason: string): void
}

const credentialKinds: ReadonlySet<string> = new Set([credentials.kind, sshCredentials.kind])
const ownerKinds: ReadonlySet<string> = new Set([users.kind, botUsers.kind])

export class LiveCredentials implements Followed {
  readonly #store: Store
  readonly #sessions: Sessions
  readonly #credentials: AgentCredentials

  constructor(store: Store, sessions: Sessions) {
    this.#store = store
    this.#sessions = sessions
    this.#credentials = new AgentCredentials(store)
  }

  load(): Promise<void> {
    return this.#check(this.#sessions.credentialsInUse())
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const touched = new Set(changes.filter(({ kind }) => credentialKinds.has(kind)).map(({ id }) => id))
    // When an owner is deleted, each of its credentials has a change of its own in the feed.
    for (const { id } of changes.filter(({ kind }) => ownerKinds.has(kind))) {
      for (const owned of await this.#store.read((reader) => reader.ownedBy(id))) touched.add(owned.id)
    }
    await this.#check(touched)
  }

  async #check(ids: ReadonlySet<string>): Promise<void> {
    const inUse = this.#sessions.credentialsInUse()
    const check = async (id: string): Promise<void> => {
      if (!inUse.has(id) || (await this.#credentials.current(id))) return
      this.#sessions.endSessionsOf(id, 'its credential was deleted, or its owner is inactive')
    }
    await Promise.all([...ids].map(check))
  }
}
