/**
 * Has new objects made where the collector expects those that die young.
 *
 * The engine watches where in the code objects are made, and those of a place whose objects once lived for long it makes
 * among the old ones from then on. Here every request makes its objects at the same places, and they die with it: among
 * the old ones they are not looked at for seconds, and keep alive all that they point to. Once that began, a third of
 * all that requests made was copied and kept for nothing, and which servers it befell was chance.
 */
import { setFlagsFromString } from 'node:v8'

export function keepObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
