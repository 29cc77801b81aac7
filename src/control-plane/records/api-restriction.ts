/** Which addresses may call the API and open its pages: the IP restrictions of types `api` and `dashboard` (D64). */

import type { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import type { RestrictedPart } from '../../model/restricted-part.ts'
import type { Store } from '../store/store.ts'
import { type CompiledRestrictions, readRestrictions } from './stored-restrictions.ts'

/** Parts that the API listener serves. */
type ApiPart = Extract<RestrictedPart, 'api' | 'dashboard'>

export class ApiRestriction {
  readonly #store: Store
  readonly #refused: RefusedAddresses
  /** Null when the stored rules may have changed since they were compiled. */
  #current: Promise<CompiledRestrictions> | null = null

  constructor(store: Store, refused: RefusedAddresses) {
    this.#store = store
    this.#refused = refused
    // The next call waits until the rules are read again, so a restriction is in force for the first call after it was stored.
    store.feed.subscribe(() => {
      this.#current = null
    })
  }

  /** Whether `address` may reach `part`. Rejects when the rules cannot be read; nobody is admitted then. */
  async admits(part: ApiPart, address: string): Promise<boolean> {
    this.#current ??= this.#store.read(readRestrictions)
    const reading = this.#current
    try {
      const restriction = (await reading).get(part)
      if (!restriction || restriction.admits(address)) return true
      this.#refused.note(part, address, restriction)
      return !restriction.isEnforced
    } catch (error) {
      // A failed read is not cached: the next call tries again.
      if (this.#current === reading) this.#current = null
      throw error
    }
  }
}
