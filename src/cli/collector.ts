/**
 * Makes V8 allocate all new objects in the young generation.
 *
 * V8 tracks where in the code objects are allocated. If objects of one place lived long before, it allocates later ones of
 * that place directly in the old generation ("pretenuring"). Here every request allocates at the same places, and its
 * objects die with it: in the old generation they would not be collected for seconds, and would keep alive everything they
 * point to. Whether this began on a server was chance; where it did, a third of what requests allocated was copied and kept
 * for nothing.
 */
import { setFlagsFromString } from 'node:v8'

export function keepObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
