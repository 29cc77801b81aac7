/** Turns stored resources into answers of the API. */
import { shape } from '../../lib/shape/schema.ts'
import type { ModuleConfig, ShownAt } from '../../modules/module.ts'
import { formsOf } from '../../modules/spellings.ts'
import { resourceOf } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import type { Links } from '../resources/resource-links.ts'
import type { StoredResource } from '../store/reader.ts'

/** A stored resource with everything its answer needs: opened secrets, children, and a token if just created. */
export interface Complete extends StoredResource {
  readonly children: readonly Complete[]
  readonly live: Readonly<Record<string, readonly string[]>>
  readonly token: string | null
  /** A stored fact about it. */
  readonly fact?: string | undefined
  /** Set when a module shows addresses of its own. */
  readonly shownAt?: ShownAt
}

/** How a resource is shown. */
export interface Showing {
  readonly links: Links
  /** Whether modules are also shown in their other spellings. */
  readonly spellings: boolean
}

/** The answer for one resource, with every field of its view. */
export function show(resource: Resource, record: Complete, showing: Showing): Record<string, unknown> {
  const { links } = showing
  const value: Record<string, unknown> = {
    ...record.fields,
    ...resource.read(record.fields, links.to, record.fact),
    id: record.id,
    uri: links.one(resource, record.id, record.parentId),
    created_at: record.createdAt,
  }
  if (resource.access === 'owner') value.owner_id = record.ownerId
  if (resource.mints) value[resource.mints.field] = record.token
  const { parent, embeds } = resource
  if (parent && record.parentId) {
    value[parent.shownAs] = parent.shownAs === parent.field ? record.parentId : links.to(record.parentId)
  }
  for (const [field, ids] of Object.entries(record.live)) value[field] = ids.map(links.to)
  const shown = shape(resource.view, value) as Record<string, unknown>
  if (embeds) {
    const child = resourceOf(embeds.kind)
    shown[embeds.field] = record.children.map((each) => show(child, each, showing))
  }
  return Object.assign(shown, showModules(resource, record, showing))
}

/** The modules of an edge or route as its fields; null where one is not set. */
function showModules(resource: Resource, { modules, shownAt }: Complete, { links, spellings }: Showing) {
  const { place } = resource
  const shown: Record<string, unknown> = {}
  for (const module of resource.modules) {
    const config = modules.get(module.name) as ModuleConfig | undefined
    const forms = place ? formsOf(module, place) : []
    for (const form of spellings ? forms : forms.slice(0, 1)) {
      shown[form.name] = config ? form.show(config, links.to, shownAt) : null
    }
  }
  return shown
}
