/** Ids of label tunnels, which stay the same when their session returns. */
import { createHash } from 'node:crypto'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { Tunnel } from './session-types.ts'

type Labels = Readonly<Record<string, string>>

/** Characters at the end of an id that identify session and labels; those before them are the time, by which ids sort. */
const MARK_LENGTH = 14

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** How many ids of ended tunnels a session remembers. */
const MAX_ENDED = 1000

/**
 * The ids that one session gives to its label tunnels. Agents do not send ids back, so a session that returns gets the same ids
 * for the same labels.
 */
export class LabelIds {
  readonly #sessionId: string
  readonly #former: Map<string, FormerLabelTunnel[]>
  /** Whether the agent may use ids that this process does not know. */
  readonly #mayKnowOthers: boolean
  /**
   * Ids that the agent ended: it may repeat that up to three times, which must not end the next tunnel with the same labels.
   */
  readonly #ended = new Set<string>()

  /** `former` are the label tunnels that the session had before, as far as known. */
  constructor(
    sessionId: string,
    { isResumed, former }: { readonly isResumed: boolean; readonly former: readonly FormerLabelTunnel[] },
  ) {
    this.#sessionId = sessionId
    this.#former = Map.groupBy(former, ({ labels }) => digestOf(labels))
    this.#mayKnowOthers = isResumed && former.length === 0
  }

  /** The id for another tunnel with these labels, and when it started if it existed before. */
  assign(labels: Labels, present: readonly Tunnel[], fresh: () => string): { id: string; startedAt?: number } {
    const former = this.#former.get(digestOf(labels))?.shift()
    if (former) return { id: former.id, startedAt: former.startedAt }
    const marks = new Set(present.map(({ id }) => markOf(id)))
    let nth = 0
    while (marks.has(this.#mark(labels, nth))) nth++
    return { id: fresh().slice(0, -MARK_LENGTH) + this.#mark(labels, nth) }
  }

  /**
   * Finds the label tunnel that an agent ends by an id from before a restart of the server: agents go on using such
   * ids, which are recognised by their marks.
   */
  findEnding(id: string, present: readonly Tunnel[]): Tunnel | undefined {
    if (!this.#mayKnowOthers || this.#ended.has(id)) return undefined
    return present.find((each) => each.labels && markOf(each.id) === markOf(id))
  }

  ended(id: string): void {
    if (!this.#mayKnowOthers) return
    this.#ended.add(id)
    const [oldest] = this.#ended
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest)
  }

  #mark(labels: Labels, nth: number): string {
    const hash = createHash('sha256')
      .update(`${this.#sessionId}\0${digestOf(labels)}\0${nth}`)
      .digest()
    return Array.from(hash.subarray(0, MARK_LENGTH), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('')
  }
}

/** A short key for a set of labels, whatever its order. */
function digestOf(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64')
}

function markOf(id: string): string {
  return id.slice(-MARK_LENGTH)
}
