/** Defines what an API resource is. Each of the other files in this folder describes one. */
import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { Clock } from '../../lib/clock.ts'
import { closed, nullable, viewOf } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import type { SshKeyChoice, SshKeyPair } from '../../lib/ssh-keys/ssh-key-pair.ts'
import type { ErrorCode } from '../../model/errors.ts'
import type { AgentCommand, Presence } from '../../model/presence.ts'
import { type Link, RefSchema } from '../../model/ref.ts'
import type { Mention, Module, Place } from '../../modules/module.ts'
import { formsOf } from '../../modules/spellings.ts'

export type Verb = 'create' | 'list' | 'get' | 'update' | 'delete'

/** The fields that only the resource itself understands. Ids, times, owner, parent and modules are stored separately. */
export type Fields = Readonly<Record<string, unknown>>

/** A name that only one resource may hold, such as a hostport. */
export interface Claim {
  readonly scope: string
  readonly key: string
  /** The refusal when another resource holds the name; `field` is that of the body, if one of them is at fault. */
  readonly taken: { readonly code: ErrorCode; readonly msg: string; readonly field?: string }
}

/** The facts about the server that resources may use. */
export interface Surroundings {
  readonly tcpPorts: { readonly from: number; readonly to: number }
  readonly publicHttpsPort: number
  readonly domain: string
  readonly region: string
  /** Whether this server orders certificates. */
  readonly managesCertificates?: boolean
  /** Whether the server itself has a name, by its settings. */
  readonly isOwnName?: (name: string) => boolean
  /** What a CNAME record of a name must point to, where names must be proven. */
  readonly cnameTarget?: ((name: string) => string) | undefined
  /** The id of the endpoint of an agent that serves this name or TCP port now, if any. */
  readonly endpointAt?: (address: { readonly name: string } | { readonly port: number }) => string | undefined
}

/** Whether no resource holds a name yet; runs inside the transaction that may claim it. */
export type IsFree = (scope: string, key: string) => Promise<boolean>

/** What `make` can use for keys and signatures. */
export interface Making {
  /** The id that the resource will have. */
  readonly id: string
  readonly now: Clock
  /** Makes a key pair on another thread, which takes long. */
  readonly keyPair: (choice: SshKeyChoice) => Promise<SshKeyPair>
  /** The fields of another resource, with its secrets decrypted; throws `Refusal` when it does not exist. */
  readonly fieldsOf: (mention: Mention) => Promise<Fields>
}

/** The resource that this one belongs to and is deleted with: named in the path (edge) or in the body (IP policy). */
interface Parent {
  readonly kind: string
  readonly field: string
  readonly in: 'path' | 'body'
  /** The field of a response that holds the parent: its id, or a Ref where `field` and this one differ. */
  readonly shownAs: string
}

/** A second name of a resource: the same resources under another path. */
interface OtherName extends Pick<Resource, 'noun' | 'about' | 'path' | 'listKey'> {
  /** The name in operations: `service_user`. */
  readonly name: string
}

/** `about` describes the action in the API document and on the command line. */
export interface ResourceAction {
  readonly name: 'renew'
  readonly about: string
}

export interface Resource {
  /** Stored with each row and used as the schema's name in the API document: `api_key`. */
  readonly kind: string
  /** The name in sentences: `API key`. */
  readonly noun: string
  readonly about: string
  readonly prefix: string
  /** `/api_keys`; a `{edge_id}` in it names the parent. */
  readonly path: string
  /** Name of the array in a list response; null when there is no list operation. */
  readonly listKey: string | null
  readonly otherName?: OtherName
  readonly verbs: readonly Verb[]
  /** `owner`: members see only their own. `account`: any valid key. `admin`: admins only. */
  readonly access: 'owner' | 'account' | 'admin'
  /**
   * `store`: kept in the database. `presence`: what is online now, read only. `logins`: logins of visitors, which can
   * be read and ended. `traffic`: recent traffic, in the memory of the nodes. `numbers`: counted by data planes.
   * `dry_run`: not stored.
   */
  readonly source: 'store' | 'presence' | 'logins' | 'traffic' | 'numbers' | 'dry_run'
  readonly commands: readonly AgentCommand[]
  /** Further actions on one of them, by `POST <path>/{id}/<name>`. */
  readonly actions?: readonly ResourceAction[]
  readonly parent?: Parent
  /** The children shown inside this resource. */
  readonly embeds?: { readonly field: string; readonly kind: string }
  /** Modules attach to this place. */
  readonly place?: Place
  /** The modules that attach there, in order: fields of the resource. */
  readonly modules: readonly Module[]
  /** A secret that is made at creation, shown once in the answer, and stored only as a hash in this scope of claims. */
  readonly mints?: { readonly field: 'token'; readonly scope: string }
  /** The whole bodies of create and update, and the whole response. */
  readonly create: TObject
  readonly update: TObject
  readonly view: TObject
  readonly settle: (fields: Fields, around: Surroundings) => Fields
  /**
   * The cost of `settle`, in the unit of `patternPrice`, for one that may take long and may run on another thread. It
   * must not use `around`, and reads only fixed fields and those in `renews`, so that other updates need not run it.
   */
  readonly price?: ((fields: Fields) => number) | undefined
  /** Fields of an update for which a priced `settle` runs again. */
  readonly renews: readonly string[]
  /** Columns of a list on the command line between the id and the description, as paths: `names.dns`. */
  readonly columns?: readonly string[]
  /** Query parameters that filter a list, besides those for paging; all are optional. */
  readonly filters?: TProperties
  readonly read: (fields: Fields, link: Link, fact?: string) => Fields
  /** The key of a fact that is stored beside the resource and shown with it. */
  readonly fact?: (fields: Fields) => string
  readonly claims: (fields: Fields, parentId: string | null) => readonly Claim[]
  /** Other resources that the fields refer to. When a delete is refused, its message names the first word of `field`. */
  readonly mentions: (fields: Fields) => readonly Mention[]
  /** Runs at creation, inside the transaction: fills in what the server chooses, such as a free port, or refuses. */
  readonly choose?: (fields: Fields, around: Surroundings, isFree: IsFree) => Promise<Fields>
  /** Makes keys and signatures at creation, before the transaction begins, since that takes long. Returns the fields. */
  readonly make?: (fields: Fields, making: Making) => Promise<Fields>
  /** Fields that are encrypted in the store. */
  readonly secrets: readonly string[]
  /** Fields that `DELETE <path>/{id}/<name>` clears. */
  readonly clears: readonly { readonly name: string; readonly field: string }[]
  /** Fields that list what is online now; the ids are shown as references. */
  readonly live?: (fields: Fields, presence: Presence) => Promise<Readonly<Record<string, readonly string[]>>>
}

/** How a file of this folder describes a stored resource; everything else is derived from this. */
interface StoredSpec<Form extends TProperties, Kept extends Fields>
  extends Pick<Resource, 'kind' | 'noun' | 'about' | 'prefix' | 'path' | 'listKey' | 'access'>,
    Partial<Pick<Resource, 'otherName' | 'parent' | 'embeds' | 'place' | 'modules' | 'mints' | 'columns' | 'actions'>> {
  /** Fields of the create body. Those with a default, or required, are always shown; others are null when unset. */
  readonly form: Form
  /** Fields of `form` that an update cannot change. */
  readonly fixed?: readonly (keyof Form & string)[]
  /** Fields of the response that are not in `form`, or are shown in another form. */
  readonly shows?: TProperties
  /** Fields of `form` that no response shows. */
  readonly hides?: readonly (keyof Form & string)[]
  /** Checks what a schema cannot express, on every write; returns what is stored. Throws `BadValue` or `Refusal`. */
  readonly settle?: (fields: Static<TObject<Form>>, around: Surroundings) => Kept
  readonly price?: Resource['price']
  readonly renews?: readonly (keyof Form & string)[]
  /** Returns the fields that are shown in another form than they are kept; the others are shown as kept. */
  readonly read?: (fields: Kept, link: Link, fact?: string) => Fields
  readonly fact?: (fields: Kept) => string
  readonly claims?: (fields: Kept, parentId: string | null) => readonly Claim[]
  readonly mentions?: (fields: Kept) => readonly Mention[]
  readonly choose?: (fields: Kept, around: Surroundings, isFree: IsFree) => Promise<Kept>
  readonly make?: (fields: Static<TObject<Form>>, making: Making) => Promise<Kept>
  readonly secrets?: readonly (keyof Kept & string)[]
  readonly clears?: Resource['clears']
  readonly live?: (fields: Kept, presence: Presence) => ReturnType<NonNullable<Resource['live']>>
}

/** Makes the resource that `spec` describes. */
export function stored<Form extends TProperties, Kept extends Fields = Static<TObject<Form>> & Fields>(
  spec: StoredSpec<Form, Kept>,
): Resource {
  const {
    form,
    fixed = [],
    shows = {},
    hides = [],
    settle,
    read,
    claims,
    mentions,
    choose,
    make,
    live,
    fact,
    ...rest
  } = spec
  const owner = spec.access === 'owner' ? { owner_id: Type.Optional(ownerField) } : {}
  const modules = moduleFields(spec)
  return {
    modules: [],
    secrets: [],
    clears: [],
    renews: [],
    ...rest,
    source: 'store',
    commands: [],
    verbs:
      spec.listKey === null ? ['create', 'get', 'update', 'delete'] : ['create', 'list', 'get', 'update', 'delete'],
    create: closed({ ...form, ...owner, ...modules.forms }),
    update: closed({ ...forUpdate(without(form, fixed)), ...modules.forms }),
    view: closed({
      ...identity(spec),
      ...(viewOf(closed(without(form, hides))) as TObject).properties,
      ...shows,
      ...modules.views,
    }),
    // These functions are only called with fields that passed the forms of this same resource, so the casts are safe.
    settle: (settle ?? ((fields: unknown) => fields)) as Resource['settle'],
    read: (read ?? (() => ({}))) as Resource['read'],
    claims: (claims ?? (() => [])) as Resource['claims'],
    mentions: (mentions ?? (() => [])) as Resource['mentions'],
    ...(choose && { choose: choose as NonNullable<Resource['choose']> }),
    ...(make && { make: make as NonNullable<Resource['make']> }),
    ...(live && { live: live as NonNullable<Resource['live']> }),
    ...(fact && { fact: fact as NonNullable<Resource['fact']> }),
  }
}

/** The modules at a place, as fields of the body and of the response. */
function moduleFields({ place, modules = [] }: Partial<Pick<Resource, 'place' | 'modules'>>): {
  forms: TProperties
  views: TProperties
} {
  const forms: TProperties = {}
  const views: TProperties = {}
  if (!place) return { forms, views }
  for (const module of modules) {
    for (const { name, body, view } of formsOf(module, place)) {
      forms[name] = Type.Optional(body)
      // Other spellings are accepted, but shown only in the vendor's dialect.
      if (name === module.name) views[name] = nullable(view)
    }
  }
  return { forms, views }
}

/** A resource that is read from presence: what is online. */
export function present({
  access = 'account',
  ...spec
}: UnwrittenSpec & Pick<Resource, 'commands'> & { readonly access?: 'account' | 'admin' }): Resource {
  return unwritten(spec, {
    access,
    source: 'presence',
    commands: spec.commands,
    verbs: ['list', 'get'],
  })
}

/** A resource that visitors make by logging in. */
export function loggedIn(spec: UnwrittenSpec): Resource {
  return unwritten(spec, { access: 'account', source: 'logins', commands: [], verbs: ['list', 'get', 'delete'] })
}

/** A resource that records traffic. */
export function passed(spec: UnwrittenSpec & Pick<Resource, 'verbs' | 'filters'>): Resource {
  return unwritten(spec, { access: 'account', source: 'traffic', commands: [], verbs: spec.verbs })
}

/** Numbers that data planes have counted. */
export function counted(spec: UnwrittenSpec & Pick<Resource, 'access'>): Resource {
  return unwritten(spec, { access: spec.access, source: 'numbers', commands: [], verbs: [] })
}

/** How a file of this folder describes a resource that the API cannot create or change. */
type UnwrittenSpec = Pick<Resource, 'kind' | 'noun' | 'about' | 'prefix' | 'path' | 'listKey' | 'columns'> & {
  readonly shows: TProperties
}

function unwritten(
  { shows, ...rest }: UnwrittenSpec,
  { access, source, commands, verbs }: Pick<Resource, 'access' | 'source' | 'commands' | 'verbs'>,
): Resource {
  return {
    ...rest,
    source,
    commands,
    verbs,
    access,
    create: closed({}),
    update: closed({}),
    view: closed(shows),
    settle: (fields) => fields,
    read: () => ({}),
    claims: () => [],
    mentions: () => [],
    modules: [],
    secrets: [],
    clears: [],
    renews: [],
  }
}

const ownerField = Type.String({
  description: 'Owning user or bot; the caller when left out. Only admins may name somebody else.',
  maxBytes: 64,
  'x-for-admins': true,
})

/** The fields that every stored resource shows first. */
function identity(spec: Pick<Resource, 'access' | 'parent' | 'mints'>): TProperties {
  const fields: TProperties = {
    id: Type.String({ description: 'Unique identifier.' }),
    uri: Type.String({ description: 'Address of this resource.' }),
    created_at: Type.String({ description: 'When it was created, RFC 3339.' }),
  }
  if (spec.parent) {
    const { shownAs, field } = spec.parent
    fields[shownAs] =
      shownAs === field ? Type.String({ description: 'Id of the resource that it belongs to.' }) : RefSchema
  }
  if (spec.mints) {
    fields[spec.mints.field] = nullable(
      Type.String({ description: 'Shown once, in the answer to its creation; null afterwards.' }),
    )
  }
  if (spec.access === 'owner') fields.owner_id = Type.String({ description: 'Owning user or bot.' })
  return fields
}

function without(properties: TProperties, names: readonly string[]): TProperties {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !names.includes(name)))
}

/** An update changes only the fields that it names, so none is required and none has a default. */
function forUpdate(properties: TProperties): TProperties {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const { default: _, ...rest } = schema as TSchema & { default?: unknown }
      return [name, Type.Optional(rest)]
    }),
  )
}
