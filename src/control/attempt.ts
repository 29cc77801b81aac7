/** Runs a write so that losing a race is told like any other refusal. */
import { Refusal } from '../model/errors.ts'
import { StoreConflict } from '../store/store.ts'

/**
 * The checks inside a transaction name what is wrong; the database's own constraints hold when somebody was faster.
 * Then a second try meets the checks.
 */
export async function attempt<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error
  }
  try {
    return await write()
  } catch (cause) {
    if (cause instanceof StoreConflict) throw new Refusal('CONFLICT', undefined, { cause })
    throw cause
  }
}
