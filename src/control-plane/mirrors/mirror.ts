/** Follows what is stored of some kinds and passes it on, to a data plane or an index. */
import { ownTurn } from '../../lib/threads/others-turn.ts'
import type { Resource } from '../resources/resource.ts'
import { everyPage } from '../store/every-page.ts'
import { changedIds } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

/** What has changed, by id. */
export interface MirrorChange<Item> {
  /** Everything that was sent before is void. */
  readonly isAll: boolean
  /** The ids that may have changed, of items sent or not. Empty when `isAll`. */
  readonly ids: readonly string[]
  /**
   * The items of the changed ids as they were sent last. These items are gone, unless `set` has them again. Empty when
   * `isAll`.
   */
  readonly removed: ReadonlyMap<string, Item>
  readonly set: ReadonlyMap<string, Item>
  /** Every item there is now. */
  readonly all: ReadonlyMap<string, Item>
}

interface MirrorOptions<Item> {
  readonly kinds: readonly string[]
  /** Reads the stored items by id: all, or at least those of `ids`. */
  readonly read: (ids?: readonly string[]) => Promise<Iterable<readonly [id: string, item: Item]>>
  /** Resolves when the change is in force. While it fails, the change is sent again, together with later ones. */
  readonly send: (change: MirrorChange<Item>) => unknown
}

/** How many resources are read at once. */
const AT_A_TIME = 100

/**
 * Passes on everything at first and after a gap in the feed, otherwise only what has changed. `Follower` calls it in the
 * order of the feed, one call after the other.
 */
export function mirror<Item>({ kinds, read, send }: MirrorOptions<Item>): Followed {
  let all = new Map<string, Item>()
  const replace = (before: ReadonlyMap<string, Item>, after: ReadonlyMap<string, Item>): void => {
    for (const id of before.keys()) all.delete(id)
    for (const [id, item] of after) all.set(id, item)
  }
  return {
    async load() {
      const set = new Map(await read())
      // Sent even when there is nothing: the receiver may have something of an earlier control plane.
      await send({ isAll: true, ids: [], removed: new Map(), set, all: set })
      all = set
    },
    async apply(changes) {
      const ids = changedIds(changes, kinds)
      if (ids.length === 0) return
      const set = new Map(await read(ids))
      const former = [...new Set([...ids, ...set.keys()])].map((id) => [id, all.get(id)] as const)
      const removed = new Map(former.flatMap(([id, item]) => (item === undefined ? [] : [[id, item] as const])))
      replace(removed, set)
      try {
        await send({ isAll: false, ids, removed, set, all })
      } catch (error) {
        // The receiver may still have what was removed, so the next attempt must name it again.
        replace(set, removed)
        throw error
      }
    },
  }
}

/** The items of stored resources; `itemOf` leaves a resource out by returning undefined. */
export function itemsOf<Item>(
  store: Store,
  resources: readonly Pick<Resource, 'kind'>[],
  itemOf: (resource: StoredResource) => Item | undefined,
): Pick<MirrorOptions<Item>, 'kinds' | 'read'> {
  const kinds = resources.map(({ kind }) => kind)
  const items = (stored: readonly StoredResource[]) =>
    stored.flatMap((each) => {
      const item = itemOf(each)
      return item === undefined ? [] : [[each.id, item] as const]
    })
  return {
    kinds,
    async read(ids) {
      if (ids) return items(await store.read((reader) => reader.resources(ids)))
      const all: (readonly [string, Item])[] = []
      for await (const page of pagesOf(store, kinds)) all.push(...items(page))
      return all
    },
  }
}

/** All resources of some kinds. */
export async function* pagesOf(store: Store, kinds: Iterable<string>): AsyncGenerator<readonly StoredResource[]> {
  for (const kind of kinds) {
    for await (const some of everyPage(AT_A_TIME, (page) => store.read((reader) => reader.page({ kind, ...page })))) {
      yield some
      // SQLite answers synchronously: without a pause no visitor would be served until all is read.
      await ownTurn()
    }
  }
}
