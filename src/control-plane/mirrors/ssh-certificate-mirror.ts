/**
 * Ends sessions that logged in with an SSH certificate that was deleted. An authority cannot be deleted before its
 * certificates.
 */
import { sshUserCertificates } from '../resources/ssh-user-certificates.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'

/** Lists and ends live sessions by their SSH certificates. */
export interface CertifiedSessions {
  /** The ids of the certificates that live sessions logged in with. */
  certificatesInUse(): ReadonlySet<string>
  endSessionsBy(certificateId: string, reason: string): void
}

/** How many certificates are looked up in one statement. */
const AT_A_TIME = 500

export class LiveSshCertificates implements Followed {
  readonly #store: Store
  readonly #sessions: CertifiedSessions

  constructor(store: Store, sessions: CertifiedSessions) {
    this.#store = store
    this.#sessions = sessions
  }

  load(): Promise<void> {
    return this.#check(() => true)
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const touched = new Set(changes.filter(({ kind }) => kind === sshUserCertificates.kind).map(({ id }) => id))
    if (touched.size > 0) await this.#check((id) => touched.has(id))
  }

  async #check(isTouched: (id: string) => boolean): Promise<void> {
    const ids = [...this.#sessions.certificatesInUse()].filter(isTouched)
    for (let at = 0; at < ids.length; at += AT_A_TIME) {
      const some = ids.slice(at, at + AT_A_TIME)
      const there = await this.#store.read((reader) => reader.kinds(some))
      for (const id of some) {
        if (!there.has(id)) this.#sessions.endSessionsBy(id, 'its SSH certificate was deleted')
      }
    }
  }
}
