/**
 * Ids of label tunnels. Agents do not send them back, so a session that returns gets the same ids for the same labels.
 */
import { createHash } from 'node:crypto'
import type { Tunnel } from './live.ts'

type Labels = Readonly<Record<string, string>>

/** Characters at the end of an id that identify session and labels; those before are the time, by which ids sort. */
const MARK_LENGTH = 14

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** How many ids of ended tunnels a session remembers. */
const MAX_ENDED = 1000

/** How many label tunnels of ended sessions are remembered, in all. */
const MAX_REMEMBERED = 100_000

/** A label tunnel of an ended session. */
interface Former {
  readonly id: string
  readonly startedAt: number
}

type FormerByLabels = ReadonlyMap<string, Former[]>

/** The ids that one session gives to its label tunnels. */
export class LabelIds {
  readonly #sessionId: string
  readonly #former: FormerByLabels | undefined
  /** Whether the agent may use ids that this process does not know. */
  readonly #mayKnowOthers: boolean
  /**
   * Ids that the agent ended: it may repeat that up to three times, and must not hit the next tunnel with the same
   * labels.
   */
  readonly #ended = new Set<string>()

  constructor(sessionId: string, { isResumed, former }: { isResumed: boolean; former: FormerByLabels | undefined }) {
    this.#sessionId = sessionId
    this.#former = former
    this.#mayKnowOthers = isResumed && former === undefined
  }

  /** The id for another tunnel with these labels, and when it started if it existed before. */
  assign(labels: Labels, present: readonly Tunnel[], fresh: () => string): { id: string; startedAt?: number } {
    const former = this.#former?.get(digestOf(labels))?.shift()
    if (former) return former
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

/** Remembers the label tunnels of ended sessions; the oldest are forgotten first. */
export class FormerLabels {
  readonly #bySession = new Map<string, FormerByLabels>()
  readonly #max: number
  #count = 0

  constructor({ max = MAX_REMEMBERED }: { max?: number } = {}) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  remember(sessionId: string, tunnels: readonly Tunnel[]): void {
    this.take(sessionId)
    const byLabels = new Map<string, Former[]>()
    for (const { id, startedAt, labels } of tunnels) {
      if (!labels) continue
      const digest = digestOf(labels)
      const same = byLabels.get(digest)
      if (same) same.push({ id, startedAt })
      else byLabels.set(digest, [{ id, startedAt }])
      this.#count++
    }
    if (byLabels.size > 0) this.#bySession.set(sessionId, byLabels)
    for (const oldest of this.#bySession.keys()) {
      if (this.#count <= this.#max) break
      this.take(oldest)
    }
  }

  /** The tunnels of the session, by labels; they are then forgotten. */
  take(sessionId: string): FormerByLabels | undefined {
    const found = this.#bySession.get(sessionId)
    if (!found) return undefined
    this.#bySession.delete(sessionId)
    for (const same of found.values()) this.#count -= same.length
    return found
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
