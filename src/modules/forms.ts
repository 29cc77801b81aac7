/** The forms in which the API reads and shows a module: its own, and those of its other spellings. */
import type { TObject } from 'typebox'
import { shape, viewOf } from '../lib/shape/schema.ts'
import type { Link } from '../model/ref.ts'
import type { Module, ModuleConfig, Place, ShownAt, Spelling, Where } from './module.ts'
import { moduleView, showModule } from './module-view.ts'

export interface ModuleForm {
  /** The name of the field in a body, and of the last part of the path. */
  readonly name: string
  readonly body: TObject
  readonly view: TObject
  /** Turns a body that fits the form into what is stored; throws `BadValue` or `Refusal`. */
  readonly read: (given: ModuleConfig, where: Where) => ModuleConfig
  /** What `read` costs, in the unit of `patternPrice`. */
  readonly price: (given: ModuleConfig) => number
  /** `at` is needed for modules that show fields that the server sets (`shows`). */
  readonly show: (config: ModuleConfig, link: Link, at?: ShownAt) => Record<string, unknown>
}

/** The forms of a module at `place`, its own first. */
export function formsOf(module: Module, place: Place): readonly ModuleForm[] {
  const known = made.get(module) ?? new Map<Place, readonly ModuleForm[]>()
  made.set(module, known)
  const forms = known.get(place) ?? [ownForm(module, place), ...(module.spellings ?? []).map(spelled)]
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

function spelled({ name, form, read, price = free, show }: Spelling): ModuleForm {
  const view = viewOf(form) as TObject
  return { name, body: form, view, read, price, show: (config) => shape(view, show(config)) as Record<string, unknown> }
}

const free = (): number => 0
