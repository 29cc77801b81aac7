/** Further names by which agents reach the server, kept up to date by the control plane. */
import type { IngressName, IngressNameChange } from '../../link/planes/plane-calls.ts'

export class IngressNames {
  readonly #byName = new Map<string, IngressName>()

  take({ isAll, removed, set }: IngressNameChange): void {
    if (isAll) this.#byName.clear()
    for (const name of removed) this.#byName.delete(name)
    for (const each of set) this.#byName.set(each.name, each)
  }

  get(name: string): IngressName | undefined {
    return this.#byName.get(name)
  }

  /** Whether any of them shows agents its own certificate. */
  get hasPublic(): boolean {
    return [...this.#byName.values()].some(({ isPublic }) => isPublic)
  }
}
