/** Runs a write so that a lost race is reported like any other refusal. */
import { Refusal } from '../model/errors.ts'
import { StoreConflict } from '../store/store.ts'

/**
 * Checks inside the transaction name what is wrong; constraints of the database catch whoever was slower. Then a second
 * try fails in the checks.
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
