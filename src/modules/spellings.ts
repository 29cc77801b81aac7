/** The spellings in which the API reads and shows a module: its own form, and others for the same value. */
import type { TObject, TSchema } from 'typebox'
import { closedObject, shape, viewOf } from '../lib/shape/schema.ts'
import { type Link, RefListSchema, RefSchema } from '../model/ref.ts'
import type { Mention, Module, ModuleConfig, Place, ShownAt, Spelling } from './module.ts'

export interface ModuleForm extends Pick<Spelling, 'name' | 'read'> {
  readonly body: TObject
  readonly view: TObject
  /** What `read` costs, in the unit of `patternPrice`. */
  readonly price: (given: ModuleConfig) => number
  /** `at` is needed for modules that show fields that the server sets (`shows`). */
  readonly show: (config: ModuleConfig, link: Link, at?: ShownAt) => Record<string, unknown>
}

/** The forms of a module at `place`, its own first. */
export function formsOf(module: Module, place: Place): readonly ModuleForm[] {
  const known = made.get(module) ?? new Map<Place, readonly ModuleForm[]>()
  made.set(module, known)
  const forms = known.get(place) ?? [ownForm(module, place), ...(module.spellings ?? []).map(formOfSpelling)]
  known.set(place, forms)
  return forms
}

/** Schemas are derived once: modules never change, and every answer that shows one needs its forms. */
const made = new WeakMap<Module, Map<Place, readonly ModuleForm[]>>()

function ownForm(module: Module, place: Place): ModuleForm {
  const body = module.at[place]
  if (!body) throw new Error(`module ${module.name} does not attach to ${place}`)
  const view = moduleView(module, body)
  return {
    name: module.name,
    body,
    view,
    read: (given, where) => module.accept?.(given, where) ?? given,
    price: module.price ?? free,
    show: (config, link, at) => showModule({ module, view }, config, link, at),
  }
}

function formOfSpelling({ name, form, read, price = free, show }: Spelling): ModuleForm {
  const view = viewOf(form) as TObject
  return { name, body: form, view, read, price, show: (config) => shape(view, show(config)) as Record<string, unknown> }
}

const free = (): number => 0

/** The schema of a module in answers, made from its request form for one place. */
function moduleView(module: Module, form: TObject): TObject {
  const { properties } = viewOf(form) as TObject
  const { reference, shows } = module
  if (!reference) return closedObject({ ...properties, ...shows?.fields })
  const { [reference.field]: ids, ...rest } = properties as Record<string, TSchema & { type?: string }>
  const refs = { [reference.shownAs]: ids?.type === 'array' ? RefListSchema : RefSchema }
  return closedObject({ ...rest, ...refs, ...shows?.fields })
}

/** A module's stored configuration as answers show it. */
function showModule(
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
