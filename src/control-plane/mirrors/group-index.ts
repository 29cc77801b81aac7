/** Finds the tunnel groups that a labelled tunnel serves; indexed by label, so that not all groups are searched. */
import { Groups } from '../../lib/multi-map.ts'
import { labelTexts } from '../../model/label-groups.ts'
import { fieldsOf } from '../resources/resource.ts'
import { tunnelGroupBackends } from '../resources/tunnel-group-backends.ts'
import type { Store } from '../store/store.ts'
import { itemsOf, mirror } from './mirror.ts'

type Labels = Readonly<Record<string, string>>

export function tunnelGroupIndex(store: Store) {
  let groups: ReadonlyMap<string, Labels> = new Map()
  /** Ids of groups by their first label. */
  const byLabel = new Groups<string>()
  const followed = mirror<Labels>({
    ...itemsOf(store, [tunnelGroupBackends], (stored) => fieldsOf(tunnelGroupBackends, stored).labels),
    send({ isAll, removed, set, all }) {
      groups = all
      if (isAll) byLabel.clear()
      for (const [id, labels] of removed) byLabel.delete(firstOf(labels), id)
      for (const [id, labels] of set) byLabel.add(firstOf(labels), id)
    },
  })
  return {
    ...followed,
    /** Ids of the groups whose labels are all among `labels`, newest first. */
    serving(labels: Labels): string[] {
      const ids = labelTexts(labels).flatMap((text) => [...byLabel.get(text)])
      return ids
        .filter((id) => Object.entries(groups.get(id) ?? {}).every(([key, value]) => labels[key] === value))
        .sort((a, b) => (a < b ? 1 : -1))
    },
  }
}

function firstOf(labels: Labels): string {
  return labelTexts(labels)[0] ?? ''
}
