/** Further names by which agents reach the server, as the control plane says they change. */
import type { IngressName, IngressNameChange } from './port.ts'

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

  /** Whether agents are shown the certificate of any of them. */
  get hasPublic(): boolean {
    return [...this.#byName.values()].some(({ isPublic }) => isPublic)
  }
}
