/** The bind of a tunnel at one session of its agent: what the server granted there. */
import type { BindAnswer } from '../link/wire/messages/bind.ts'

export class TunnelBind {
  #got: BindAnswer | undefined
  #isOnline = false

  /** What the server granted last; undefined before the first bind. */
  get got(): BindAnswer | undefined {
    return this.#got
  }

  get isOnline(): boolean {
    return this.#isOnline
  }

  /** The ids that visitors carry: that of the bind, and over further connections the one that the API shows. */
  get ids(): readonly string[] {
    return [this.#got?.id ?? '', this.#got?.tunnelId ?? ''].filter((id) => id !== '')
  }

  online(answer: BindAnswer): void {
    this.#got = answer
    this.#isOnline = true
  }

  offline(): void {
    this.#isOnline = false
  }

  /** Forgets what was granted, so that the next bind is a new one. */
  forget(): void {
    this.#got = undefined
    this.#isOnline = false
  }
}
