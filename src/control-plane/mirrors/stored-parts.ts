/** Keeps a value derived from each stored resource of some kinds, by id, up to date with the change feed. */
import type { Change } from '../store/feed.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

interface StoredPartsOptions<Part> {
  readonly store: Store
  readonly kinds: readonly string[]
  /** Undefined leaves a resource out. */
  readonly partOf: (resource: StoredResource) => Part | undefined
}

/** The values of the changed resources before and after the change. */
export interface PartChange<Part> {
  readonly before: readonly (readonly [id: string, part: Part])[]
  readonly after: readonly (readonly [id: string, part: Part])[]
}

/** How many resources are read at once. */
const AT_A_TIME = 100

export class StoredParts<Part extends object> {
  readonly #options: StoredPartsOptions<Part>
  readonly #byId = new Map<string, Part>()

  constructor(options: StoredPartsOptions<Part>) {
    this.#options = options
  }

  get byId(): ReadonlyMap<string, Part> {
    return this.#byId
  }

  /** Reads all resources again. */
  async load(): Promise<void> {
    const { store, kinds } = this.#options
    this.#byId.clear()
    for (const kind of kinds) {
      let beforeId: string | undefined
      do {
        const some = await store.read((reader) =>
          reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) }),
        )
        this.#take(some)
        beforeId = some.at(-1)?.id
      } while (beforeId !== undefined)
    }
  }

  /** Undefined when nothing of these kinds changed. */
  async apply(changes: readonly Change[]): Promise<PartChange<Part> | undefined> {
    const { store, kinds } = this.#options
    const touched = [...new Set(changes.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id))]
    if (touched.length === 0) return undefined
    const found = await store.read((reader) => reader.resources(touched))
    const before = touched.flatMap((id) => {
      const part = this.#byId.get(id)
      return part ? [[id, part] as const] : []
    })
    for (const id of touched) this.#byId.delete(id)
    return { before, after: this.#take(found) }
  }

  #take(resources: readonly StoredResource[]): (readonly [string, Part])[] {
    const taken = resources.flatMap((resource) => {
      const part = this.#options.partOf(resource)
      return part ? [[resource.id, part] as const] : []
    })
    for (const [id, part] of taken) this.#byId.set(id, part)
    return taken
  }
}
