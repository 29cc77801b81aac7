/** How a module is shown: its request form with ids turned into references. */
import type { TObject, TSchema } from 'typebox'
import { closed, shape, viewOf } from '../lib/schema.ts'
import { type Link, RefListSchema, RefSchema } from '../model/ref.ts'
import type { Mention, Module, ModuleConfig, Place } from './module.ts'

/** The schema of a module's response, from that of its request form in one place. */
export function moduleView(module: Module, form: TObject): TObject {
  const view = viewOf(form) as TObject
  const { reference } = module
  if (!reference) return view
  const { [reference.field]: ids, ...rest } = view.properties as Record<string, TSchema & { type?: string }>
  return closed({ ...rest, [reference.shownAs]: ids?.type === 'array' ? RefListSchema : RefSchema })
}

/** A module's stored configuration as it is shown. */
export function showModule(module: Module, view: TObject, config: ModuleConfig, link: Link): Record<string, unknown> {
  const { reference } = module
  const value: Record<string, unknown> = { ...config }
  if (reference) {
    const ids = config[reference.field]
    value[reference.shownAs] = Array.isArray(ids) ? ids.map((id) => link(String(id))) : link(String(ids))
  }
  return shape(view, value) as Record<string, unknown>
}

/** Every resource that a module's configuration names. */
export function moduleMentions(module: Module, place: Place, config: ModuleConfig): readonly Mention[] {
  const { reference } = module
  const mentions = module.mentions?.(config) ?? []
  if (!reference) return mentions
  const { field, kinds } = reference
  const ids = config[field]
  const named = Array.isArray(ids)
    ? ids.map((id, i) => ({ field: `${field}[${i}]`, id: String(id), kinds: kinds(place) }))
    : [{ field, id: String(ids), kinds: kinds(place) }]
  return [...named, ...mentions]
}
