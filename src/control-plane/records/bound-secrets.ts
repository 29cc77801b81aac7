/**
 * Upgrades databases of earlier versions, whose sealed values were not bound to their row and field: each is sealed again,
 * once.
 */
import { isFirstForm, type Sealer } from '../../lib/secrets/seal.ts'
import type { Store } from '../store/store.ts'
import { resealAll } from './reseal-database.ts'
import { holdKey } from './sealing.ts'

/** The stored fact that names the form in which values are sealed. */
const FORM = 'sealed_form'
const FIRST = '1'
const BOUND = '2'

/**
 * Binds every sealed value to its place. From then on the old form is refused, so that nobody with write access to the
 * database can bring an old value back.
 */
export async function bindSecrets(store: Store, sealer: Sealer): Promise<void> {
  if ((await store.read((reader) => reader.meta(FORM))) === BOUND) return
  await store.write(async (writer) => {
    await holdKey(writer, sealer)
    // When several servers start at once, one does the work and the others wait here.
    if ((await writer.keepMeta(FORM, FIRST)) === BOUND) return
    await resealAll(writer, (sealed, context) => bindToContext(sealer, sealed, context))
    await writer.setMeta(FORM, BOUND)
  })
}

function bindToContext(sealer: Sealer, sealed: string, context: string): string {
  if (!isFirstForm(sealed)) {
    throw new Error(
      `the database says that its secrets are in the form of an earlier version, but that of ${context} is not: somebody changed the database; restore it from a backup`,
    )
  }
  let text: string
  try {
    text = sealer.openFirstForm(sealed)
  } catch {
    // This secret could not be opened before either. It stays as it is, and is refused wherever it is used.
    return sealed
  }
  return sealer.seal(text, context)
}
