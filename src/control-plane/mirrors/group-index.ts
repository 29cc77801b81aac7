/** Finds the tunnel groups that a labelled tunnel serves; indexed by label, so that not all groups are searched. */
import { tunnelGroupBackends } from '../resources/tunnel-group-backends.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

type Labels = Readonly<Record<string, string>>

const AT_A_TIME = 1000

export class StoredTunnelGroups implements Followed {
  readonly #store: Store
  readonly #labels = new Map<string, Labels>()
  /** Groups by their first label. */
  readonly #byLabel = new Map<string, Set<string>>()

  constructor(store: Store) {
    this.#store = store
  }

  /** Ids of the groups whose labels are all among `labels`, newest first. */
  serving(labels: Labels): string[] {
    const ids = Object.entries(labels).flatMap(([key, value]) => [...(this.#byLabel.get(`${key}=${value}`) ?? [])])
    return ids
      .filter((id) => Object.entries(this.#labels.get(id) ?? {}).every(([key, value]) => labels[key] === value))
      .sort((a, b) => (a < b ? 1 : -1))
  }

  async load(): Promise<void> {
    this.#labels.clear()
    this.#byLabel.clear()
    let beforeId: string | undefined
    do {
      const some = await this.#store.read((reader) =>
        reader.page({ kind: tunnelGroupBackends.kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) }),
      )
      for (const group of some) this.#add(group)
      beforeId = some.at(-1)?.id
    } while (beforeId !== undefined)
  }

  async apply(changes: readonly Change[]): Promise<void> {
    const ids = [...new Set(changes.filter(({ kind }) => kind === tunnelGroupBackends.kind).map(({ id }) => id))]
    if (ids.length === 0) return
    const found = await this.#store.read((reader) => reader.resources(ids))
    for (const id of ids) this.#remove(id)
    for (const group of found) this.#add(group)
  }

  #add({ id, fields }: StoredResource): void {
    // What is stored has passed the form of its resource.
    const labels = fields.labels as Labels
    const key = keyOf(labels)
    this.#labels.set(id, labels)
    const sharing = this.#byLabel.get(key)
    if (sharing) sharing.add(id)
    else this.#byLabel.set(key, new Set([id]))
  }

  #remove(id: string): void {
    const labels = this.#labels.get(id)
    if (!labels) return
    const key = keyOf(labels)
    this.#labels.delete(id)
    const sharing = this.#byLabel.get(key)
    sharing?.delete(id)
    if (sharing?.size === 0) this.#byLabel.delete(key)
  }
}

function keyOf(labels: Labels): string {
  const [key, value] = Object.entries(labels)[0] ?? []
  return `${key}=${value}`
}
