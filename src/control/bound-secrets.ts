/** Databases of earlier versions: their sealed values did not say what they belong to, and are sealed anew, once. */
import { isFirstForm, type Sealer } from '../lib/secrets/seal.ts'
import type { Store } from '../store/store.ts'
import { resealAll } from './reseal.ts'
import { holdKey } from './sealing.ts'

/** The fact that says in which form all values of the database are sealed. */
const FORM = 'sealed_form'
const FIRST = '1'
const BOUND = '2'

/**
 * Makes sure that every sealed value is bound to its place. From then on one in the first form is refused, so that who can
 * write the database cannot bring an old one back.
 */
export async function bindSecrets(store: Store, sealer: Sealer): Promise<void> {
  if ((await store.read((reader) => reader.meta(FORM))) === BOUND) return
  await store.write(async (writer) => {
    await holdKey(writer, sealer)
    // Of servers that start at once the others wait here for the one that does it.
    if ((await writer.keepMeta(FORM, FIRST)) === BOUND) return
    await resealAll(writer, (sealed, context) => bound(sealer, sealed, context))
    await writer.setMeta(FORM, BOUND)
  })
}

function bound(sealer: Sealer, sealed: string, context: string): string {
  if (!isFirstForm(sealed)) {
    throw new Error(
      `the database says that its secrets are in the form of an earlier version, but that of ${context} is not: somebody changed the database; restore it from a backup`,
    )
  }
  let text: string
  try {
    text = sealer.openFirstForm(sealed)
  } catch {
    // Nobody could open it before either. It stays, and is refused wherever it is used.
    return sealed
  }
  return sealer.seal(text, context)
}
