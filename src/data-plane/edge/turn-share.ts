/** How much of one turn of the event loop a connection may use: other visitors wait meanwhile. */
import { atEndOfTurn } from '../../lib/bytes/end-of-turn.ts'
import type { Sweep } from './deadlines.ts'

/** Requests of one connection that are begun in one turn. */
const REQUESTS_PER_TURN = 32

/** How long they may take together, in milliseconds. */
const SHARE_MS = 5

export class TurnShare {
  readonly #clock: Pick<Sweep, 'now'>
  readonly #renew = (): void => {
    this.#begun = 0
  }
  #begun = 0
  #until = 0

  constructor(clock: Pick<Sweep, 'now'>) {
    this.#clock = clock
  }

  /** A request begins. */
  note(): void {
    if (this.#begun++ > 0) return
    this.#until = this.#clock.now() + SHARE_MS
    atEndOfTurn(this.#renew)
  }

  /** Whether the next request belongs in a later turn. */
  get isSpent(): boolean {
    return this.#begun >= REQUESTS_PER_TURN || (this.#begun > 0 && this.#clock.now() >= this.#until)
  }
}
