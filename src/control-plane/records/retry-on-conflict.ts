/** Runs a write so that a lost race is refused like any other invalid write. */
import { Refusal } from '../../model/errors.ts'
import { StoreConflict } from '../store/store.ts'

/**
 * Checks inside the transaction say what is wrong; constraints of the database catch the slower of two writes. That one is tried
 * again, and then fails in the checks.
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
