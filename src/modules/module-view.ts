/** How a module is shown: its request form with ids turned into references, and what the server adds. */
import type { TObject, TSchema } from 'typebox'
import { closed, shape, viewOf } from '../lib/shape/schema.ts'
import { type Link, RefListSchema, RefSchema } from '../model/ref.ts'
import type { Mention, Module, ModuleConfig, Place, ShownAt } from './module.ts'

/** The schema of a module in answers, made from its request form for one place. */
export function moduleView(module: Module, form: TObject): TObject {
  const { properties } = viewOf(form) as TObject
  const { reference, shows } = module
  if (!reference) return closed({ ...properties, ...shows?.fields })
  const { [reference.field]: ids, ...rest } = properties as Record<string, TSchema & { type?: string }>
  const refs = { [reference.shownAs]: ids?.type === 'array' ? RefListSchema : RefSchema }
  return closed({ ...rest, ...refs, ...shows?.fields })
}

/** A module's stored configuration as answers show it. */
export function showModule(
  { module, view }: { module: Module; view: TObject },
  config: ModuleConfig,
  link: Link,
  at: ShownAt = nowhere,
): Record<string, unknown> {
  const { reference } = module
  const value: Record<string, unknown> = { ...config, ...module.shows?.read(config, at) }
  if (reference) {
    const ids = config[reference.field]
    value[reference.shownAs] = Array.isArray(ids) ? ids.map((id) => link(String(id))) : link(String(ids))
  }
  return shape(view, value) as Record<string, unknown>
}

/** For modules without `shows`, which do not read it. */
const nowhere: ShownAt = { id: '', hostports: [], requestCertificate: '' }

/** Every resource that a module's configuration refers to. */
export function moduleMentions(module: Module, place: Place, config: ModuleConfig): readonly Mention[] {
  const { reference } = module
  const mentions = module.mentions?.find(config) ?? []
  if (!reference) return mentions
  const { field, kinds } = reference
  const ids = config[field]
  const named = Array.isArray(ids)
    ? ids.map((id, i) => ({ field: `${field}[${i}]`, id: String(id), kinds: kinds(place) }))
    : [{ field, id: String(ids), kinds: kinds(place) }]
  return [...named, ...mentions]
}
