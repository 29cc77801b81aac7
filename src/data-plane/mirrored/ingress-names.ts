/** Further names by which agents reach the server. */
import type { IngressName } from '../../link/planes/plane-calls.ts'
import { MirroredMap } from './mirrored-map.ts'

export class IngressNames extends MirroredMap<IngressName> {
  /** Whether any of them shows agents its own certificate. */
  get hasPublic(): boolean {
    return [...this.values()].some(({ isPublic }) => isPublic)
  }
}
