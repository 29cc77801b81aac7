/** What an edge module is: the one shape that every folder beside this file fills in. */
import type { Static, TObject, TProperties } from 'typebox'
import type { BackendPlan } from '../model/edge-config.ts'
import type { Place, Where } from '../model/place.ts'
import type { Phases } from './phases.ts'
import type { ModuleTools } from './tools.ts'

export type { Place, Where } from '../model/place.ts'

/** A module's stored configuration: its request form, checked and with defaults filled in. */
export type ModuleConfig = { readonly enabled: boolean } & Readonly<Record<string, unknown>>

/**
 * How deep a module looks into the traffic. `bytes`: the connection alone. `plaintext`: what TLS protects.
 * `http`: requests. A TLS edge that passes TLS through carries only modules that need `bytes`.
 */
export type Needs = 'bytes' | 'plaintext' | 'http'

/** The field of a module that names other resources, and how it is shown: a Ref for an id, a list of Ref for a list. */
export interface Reference {
  readonly field: string
  readonly shownAs: string
  /** Kinds of resource that may be named, by place where they differ. */
  readonly kinds: (place: Place) => readonly string[]
}

/** One id inside a configuration; `field` is its path there. */
export interface Mention {
  readonly field: string
  readonly id: string
  readonly kinds: readonly string[]
}

/** The request form in each place a module attaches to. What is optional without default is shown as null. */
export type FormsAt = Readonly<Partial<Record<Place, TObject>>>

/** What is stored of a module with these forms. */
export type StoredOf<Forms extends FormsAt> = ModuleConfig & Static<NonNullable<Forms[keyof Forms & Place]>>

/**
 * A module in its own types: what it stores follows from its forms, and what `compile` takes from what `resolve` gives.
 * Methods, and not functions in fields, so that a module is also a `Module`, which knows nothing of these types; `this` is
 * not for them.
 */
export interface ModuleOf<Forms extends FormsAt, Stored extends ModuleConfig, Settings> {
  readonly name: string
  /** One sentence for the API document. */
  readonly about: string
  readonly at: Forms
  needs(this: void, config: Stored): Needs
  readonly reference?: Reference
  /** Further resources that a configuration names somewhere inside. */
  readonly mentions?: Mentions<Stored>
  /** Fields that are encrypted in the store and masked in logs. */
  readonly secrets?: readonly string[]
  /** Checks what a schema cannot say and gives the value to store; throws `BadValue` or `Refusal`. */
  accept?(this: void, config: Stored, where: Where): Stored
  /** What `accept` costs, in the unit of `patternPrice`; nothing to speak of when absent. Above `LOOP_PRICE` it runs elsewhere. */
  price?(this: void, config: Stored): number
  /** Other names and forms for the same value, in every place of the module. */
  readonly spellings?: readonly Spelling[]
  /** What the server adds to the answer: fields that no request sets, and their values. */
  readonly shows?: {
    readonly fields: TProperties
    read(this: void, config: Stored, at: ShownAt): Readonly<Record<string, unknown>>
  }
  /** From the stored configuration to what `compile` takes, as plain data with all that it names written out. */
  resolve?(this: void, config: Stored, lookup: Lookup, place: Place): Settings
  /**
   * Once per change, never per connection; throws when the settings cannot be served. What an enabled module without it
   * hangs on refuses traffic: nothing is served unguarded.
   */
  compile?(this: void, settings: Settings, tools: ModuleTools): Phases
  /** As `compile`, for what is dear: in steps, between which others have their turn. */
  steps?(this: void, settings: Settings, tools: ModuleTools): Generator<void, Phases, void>
  /** The expressions that it asks its tools for: parsed before, and not here. */
  expressions?(this: void, settings: Settings): readonly string[]
  /** The lists of patterns that `compile` asks its tools to search for: compiled before, and not here when they are dear. */
  patterns?(this: void, settings: Settings): readonly (readonly string[])[]
}

/** Where a module is shown, for addresses of its own. */
export interface ShownAt {
  /** Of the route. */
  readonly id: string
  /** Of its edge. */
  readonly hostports: readonly string[]
  /** Of the key that signs requests to identity providers, in PEM. */
  readonly requestCertificate: string
}

/** The ids that a configuration names somewhere inside, and the kinds of resource that they can be of. */
export interface Mentions<Stored> {
  readonly kinds: readonly string[]
  find(this: void, config: Stored): readonly Mention[]
}

/** Any module, to those who only carry it. */
export type Module = ModuleOf<FormsAt, ModuleConfig, unknown>

/** Checks a module against its own forms; the types of all its parts follow from them. */
export function defineModule<Forms extends FormsAt, Settings = StoredOf<Forms>>(
  module: ModuleOf<Forms, StoredOf<Forms>, Settings>,
): ModuleOf<Forms, StoredOf<Forms>, Settings> {
  return module
}

/** What a configuration names, as it is stored; each throws when there is no such thing (any more). */
export interface Lookup {
  ipRules(policyId: string): readonly { readonly cidr: string; readonly action: 'allow' | 'deny' }[]
  /** The certificates of a certificate authority, in PEM. */
  authority(id: string): string
  backend(id: string): BackendPlan
}

/** A name and a form of its own for the value of a module. It is read and written like a module, and not shown in edges. */
export interface Spelling {
  readonly name: string
  readonly about: string
  readonly form: TObject
  /** From this form, which was checked, to what the module stores, checked too; throws `BadValue` or `Refusal`. */
  readonly read: (given: ModuleConfig, where: Where) => ModuleConfig
  /** What `read` costs, as for a module. */
  readonly price?: (given: ModuleConfig) => number
  readonly show: (config: ModuleConfig) => Readonly<Record<string, unknown>>
}
