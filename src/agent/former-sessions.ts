/** Connections that an agent has moved away from: each keeps its visitors, and is closed after the last one. */
import type { Session } from './session.ts'

/** How many there may be; beyond that, the oldest is closed. A server drains at most a few at the same time. */
const MAX_FORMER = 8

export class FormerSessions {
  readonly #sessions = new Set<Session>()

  get all(): readonly Session[] {
    return [...this.#sessions]
  }

  /** Another connection takes over from this one; `bound` resolves when all tunnels are served there. */
  add(session: Session, bound: Promise<unknown>): void {
    this.#sessions.add(session)
    void session.ended.then(() => this.#sessions.delete(session))
    const [oldest] = this.#sessions
    if (this.#sessions.size > MAX_FORMER && oldest) void oldest.close()
    void bound.then(() => session.leave())
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions].map((session) => session.close()))
  }
}
