/** Sessions of the dashboard that were signed out: refused at every node until they would have ended. */
import type { ControlTools } from '../store/control-tools.ts'
import { tokenHash } from './find-caller.ts'

/** How long a sign-in lasts, in milliseconds: a working day. */
export const LIFETIME_MS = 12 * 3_600_000

/** How far the clocks of nodes may be apart, in milliseconds: one must not forget what another still lets in. */
const CLOCKS_MS = 3_600_000

/** How many are remembered for one API key; one more ends all sessions of that key which began until then. */
const MAX_ENDED = 100

export interface PageSession {
  /** The API key that somebody signed in with. */
  readonly key: string
  /** A digest of the page's secret. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly until: number
}

export class EndedPageSessions {
  readonly #options: Pick<ControlTools, 'store' | 'now'>

  constructor(options: Pick<ControlTools, 'store' | 'now'>) {
    this.#options = options
  }

  async has({ key, id, until }: PageSession): Promise<boolean> {
    const [own, all] = [prefixOf(key) + id, prefixOf(key) + ALL]
    const found = await this.#options.store.read(({ logins }) => logins.usedAnswers([own, all]))
    return found.some((row) => row.key === own || row.expires_at >= until + CLOCKS_MS)
  }

  /** Login upkeep forgets them in time, like answers of identity providers: both are proofs that may not be used again. */
  async add({ key, id, until }: PageSession): Promise<void> {
    const { store, now } = this.#options
    const prefix = prefixOf(key)
    await store.write(async ({ logins }) => {
      const isFull = (await logins.countAnswers(prefix)) >= MAX_ENDED
      if (isFull) await logins.forgetAnswers(prefix)
      const row = isFull
        ? { key: prefix + ALL, expires_at: now() + LIFETIME_MS + CLOCKS_MS }
        : { key: prefix + id, expires_at: until + CLOCKS_MS }
      await logins.useAnswer(row)
    })
  }
}

const ALL = 'all'

function prefixOf(key: string): string {
  return `page ${tokenHash(key)} `
}
