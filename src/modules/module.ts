/** Defines the form of a module: what the API stores, and what the control plane makes of it. */
import type { Static, TObject, TProperties } from 'typebox'
import { Type } from '../lib/shape/type.ts'
import type { BackendPlan } from '../model/edge-config.ts'
import { enabled } from '../model/fields.ts'
import type { Place, Where } from '../model/place.ts'

export type { Place, Where } from '../model/place.ts'

/** A module's stored configuration: its request form, checked and with defaults filled in. */
export type ModuleConfig = { readonly enabled: boolean } & Readonly<Record<string, unknown>>

/**
 * How deep a module looks into the traffic. `bytes`: the connection alone. `plaintext`: what TLS protects.
 * `http`: requests. A TLS edge that passes TLS through carries only modules that need `bytes`.
 */
export type Needs = 'bytes' | 'plaintext' | 'http'

/** The field of a module that refers to other resources. It is shown as a Ref for an id, or a list of Ref for a list. */
interface Reference {
  readonly field: string
  readonly shownAs: string
  /** The kinds of resource that it may refer to, which can depend on the place. */
  readonly kinds: (place: Place) => readonly string[]
}

/** An id inside a configuration; `field` is its path there. */
export interface Mention {
  readonly field: string
  readonly id: string
  readonly kinds: readonly string[]
}

/** The request form for each place where a module can stand. Unset optional fields without a default are shown as null. */
type FormsAt = Readonly<Partial<Record<Place, TObject<FormFields>>>>

/** `moduleForm` adds `enabled`: edges skip a module whose configuration does not have it. */
type FormFields = TProperties & { readonly enabled: typeof enabled }

/** What is stored for a module with these forms. */
type StoredOf<Forms extends FormsAt> = ModuleConfig & Static<NonNullable<Forms[keyof Forms & Place]>>

/**
 * A module in its own types: what it stores follows from its forms. It has methods instead of function fields, to be
 * assignable to `Module`, which does not know these types. The methods must not use `this`.
 */
interface ModuleOf<Forms extends FormsAt, Stored extends ModuleConfig, Settings> {
  readonly name: string
  /** One sentence for the API document. */
  readonly about: string
  readonly at: Forms
  needs(this: void, config: Stored): Needs
  readonly reference?: Reference
  /** Further resources that a configuration refers to, at any depth. */
  readonly mentions?: Mentions<Stored>
  /** Fields that are encrypted in the store and masked in logs. */
  readonly secrets?: readonly string[]
  /** Checks what a schema cannot express, and returns the value to store; throws `BadValue` or `Refusal`. */
  accept?(this: void, config: Stored, where: Where): Stored
  /** The price of `accept`, in the unit of `patternPrice`; 0 when absent. Above `LOOP_PRICE`, it runs on another thread. */
  price?(this: void, config: Stored): number
  /** Other names and forms for the same value, in every place of the module. */
  readonly spellings?: readonly Spelling[]
  /** What the server adds to the answer: fields that no request sets, and their values. */
  readonly shows?: {
    readonly fields: TProperties
    read(this: void, config: Stored, at: ShownAt): Readonly<Record<string, unknown>>
  }
  /** The settings that a data plane compiles: plain data that includes everything that the stored configuration refers to. */
  resolve(this: void, config: Stored, lookup: Lookup, place: Place): Settings
}

/** Where a module stands, for URLs that it shows. */
export interface ShownAt {
  /** The id of the route. */
  readonly id: string
  /** The hostports of the route's edge. */
  readonly hostports: readonly string[]
  /** The certificate of the key that signs requests to identity providers, in PEM. */
  readonly requestCertificate: string
}

/** Finds the ids that a configuration holds at any depth, and says of which kinds they may be. */
interface Mentions<Stored> {
  readonly kinds: readonly string[]
  find(this: void, config: Stored): readonly Mention[]
}

/** Any module, for code that does not look inside. */
export type Module = ModuleOf<FormsAt, ModuleConfig, unknown>

/** Checks a module against its own forms; the types of all its parts follow from them. */
export function defineModule<Forms extends FormsAt, Settings>(
  module: ModuleOf<Forms, StoredOf<Forms>, Settings>,
): ModuleOf<Forms, StoredOf<Forms>, Settings> {
  return module
}

/** The request form of a module: `enabled`, these fields, and no others. */
export function moduleForm<Fields extends TProperties>(fields: Fields) {
  return Type.Object({ enabled, ...fields }, { additionalProperties: false })
}

/** Finds the resources that a configuration refers to, as they are stored; throws when one does not exist. */
export interface Lookup {
  ipRules(policyId: string): readonly { readonly cidr: string; readonly action: 'allow' | 'deny' }[]
  /** The certificates of a certificate authority, in PEM. */
  authority(id: string): string
  backend(id: string): BackendPlan
}

/** Another name and form for the value of a module. The API reads and writes it like a module, but edges do not show it. */
export interface Spelling {
  /** The name of the field in a body, and of the last part of the path. */
  readonly name: string
  readonly about: string
  readonly form: TObject
  /** Turns a checked value of this form into what the module stores, checked as well; throws `BadValue` or `Refusal`. */
  readonly read: (given: ModuleConfig, where: Where) => ModuleConfig
  /** The price of `read`, like that of a module's `accept`. */
  readonly price?: (given: ModuleConfig) => number
  readonly show: (config: ModuleConfig) => Readonly<Record<string, unknown>>
}
