/** From what is stored to what the API answers. */
import { shape } from '../lib/schema.ts'
import { modulesAt } from '../modules/index.ts'
import type { ModuleConfig } from '../modules/module.ts'
import { showModule } from '../modules/view.ts'
import { resourceOf } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Links } from './links.ts'

/** A stored resource with all that its answer needs: opened secrets, its children, and a token just made. */
export interface Complete extends StoredResource {
  readonly children: readonly Complete[]
  readonly live: Readonly<Record<string, readonly string[]>>
  readonly token: string | null
}

/** The answer for one resource; every field of its view is there. */
export function show(resource: Resource, record: Complete, links: Links): Record<string, unknown> {
  const value: Record<string, unknown> = {
    ...record.fields,
    ...resource.read(record.fields, links.to),
    id: record.id,
    uri: links.one(resource, record.id, record.parentId),
    created_at: record.createdAt,
  }
  if (resource.access === 'owner') value.owner_id = record.ownerId
  if (resource.mints) value[resource.mints.field] = record.token
  const { parent, embeds, place } = resource
  if (parent && record.parentId) {
    value[parent.shownAs] = parent.shownAs === parent.field ? record.parentId : links.to(record.parentId)
  }
  if (embeds) {
    const child = resourceOf(embeds.kind)
    value[embeds.field] = record.children.map((each) => show(child, each, links))
  }
  for (const [field, ids] of Object.entries(record.live)) value[field] = ids.map(links.to)
  for (const module of place ? modulesAt(place) : []) {
    const config = record.modules.get(module.name)
    if (place && config) value[module.name] = showModule(module, place, config as ModuleConfig, links.to)
  }
  return shape(resource.view, value) as Record<string, unknown>
}
