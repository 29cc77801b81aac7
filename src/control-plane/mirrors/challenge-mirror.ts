/** Keeps a data plane up to date with the challenges by which authorities check that a name is served here. */
import type { NameChallenge, PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { StoredChallenge } from '../store/certificate-reader.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { Store } from '../store/store.ts'

/** The kind of changes of challenges in the feed; their id is the name. */
export const CHALLENGE = 'acme_challenge'

type Send = (change: Parameters<PlaneCalls['challenges']>[0]) => Promise<unknown>

export class LiveChallenges implements Followed {
  readonly #store: Store
  readonly #send: Send

  constructor(store: Store, send: Send) {
    this.#store = store
    this.#send = send
  }

  async load(): Promise<void> {
    const rows = await this.#store.read(({ certificates }) => certificates.challenges())
    // Sent even when there are none: the plane may have some of an earlier control plane.
    await this.#send({ isAll: true, set: rows.flatMap(answered), removed: [] })
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const names = [...new Set(changes.filter(({ kind }) => kind === CHALLENGE).map(({ id }) => id))]
    if (names.length === 0) return
    const set = (await this.#store.read(({ certificates }) => certificates.challenges(names))).flatMap(answered)
    const removed = names.filter((name) => !set.some((each) => each.name === name))
    await this.#send({ isAll: false, set, removed })
  }
}

/** The challenges that a listener answers; DNS challenges are not among them. */
function answered({ name, kind, token, answer }: StoredChallenge): NameChallenge[] {
  return kind === 'http-01' || kind === 'tls-alpn-01' ? [{ name, kind, token, answer }] : []
}
