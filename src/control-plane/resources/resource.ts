/** Defines what an API resource is; each of the other files in this folder describes one. */
import type { Static, TObject, TProperties, TSchema } from 'typebox'
import type { Clock } from '../../lib/clock.ts'
import { closedObject, nullable, viewOf } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import type { SshKeyChoice, SshKeyPair } from '../../lib/ssh-keys/ssh-key-pair.ts'
import { plural } from '../../lib/text/plural.ts'
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
  /** Names by which callers or agents reach the server, so that nothing else may have them (D105). */
  readonly keptNames?: () => ReadonlySet<string>
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
interface ResourceAction {
  readonly name: 'renew' | 'retry'
  readonly about: string
}

/** A handler in `api/operations.ts` that a resource names; the store serves verbs for which it names none. */
export type HandlerName =
  | ResourceAction['name']
  | 'list_present'
  | 'get_present'
  | 'list_logins'
  | 'get_login'
  | 'end_login'
  | 'start_capture'
  | 'end_capture'
  | 'list_exchanges'
  | 'get_exchange'
  | 'stream_exchanges'
  | 'replay_exchange'
  | 'get_exchange_har'
  | 'get_exchange_curl'
  | 'explain_policy'
  | 'get_traffic_minutes'
  | 'get_traffic_day'
  | 'list_broken_edges'

/** A route that does not follow from the other parts of a resource. */
interface ResourceRoute {
  /** Its name in the API document, which is also that of its handler. */
  readonly operation: HandlerName
  readonly summary: string
  readonly method: 'GET' | 'POST'
  /** What follows the path of the resource: `/{id}/replay`. */
  readonly at: string
  /** 200 by default. */
  readonly status?: 200 | 201
  readonly body?: TObject
  /** The answer; the resource itself by default. */
  readonly response?: TSchema
  /** Query parameters; all are optional. */
  readonly filters?: TProperties
  /** Says which events come, where the answer is a stream of server-sent events. */
  readonly events?: string
  /** The verb of the command line, named by the last word of `at`; there is none without this. */
  readonly verb?: RouteVerb
}

interface RouteVerb {
  readonly about: string
  /** How an answer is printed: the whole as JSON, or one field as it is; field by field by default. */
  readonly prints?: 'json' | { readonly field: string }
}

export interface Resource extends AboutFields<Fields> {
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
  /** Handlers of verbs that something else than the store serves. */
  readonly handlers?: Readonly<Partial<Record<Verb, HandlerName>>>
  /** Routes besides those that follow from the rest; the document lists them after those of all resources. */
  readonly routes?: readonly ResourceRoute[]
  /** `owner`: members see only their own. `account`: any valid key. `admin`: admins only. */
  readonly access: 'owner' | 'account' | 'admin'
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
  /** Makes keys and signatures at creation, before the transaction begins, since that takes long. Returns the fields. */
  readonly make?: (fields: Fields, making: Making) => Promise<Fields>
  /** Fields that are encrypted in the store. */
  readonly secrets: readonly string[]
  /** Fields that `DELETE <path>/{id}/<name>` clears. */
  readonly clears: readonly { readonly name: string; readonly field: string }[]
}

/** What a resource says about its fields as they are stored. */
interface AboutFields<Kept> {
  /** Returns the fields that are shown in another form than they are kept; the others are shown as kept. */
  readonly read: (fields: Kept, link: Link, fact?: string) => Fields
  /** The key of a fact that is stored beside the resource and shown with it. */
  readonly fact?: (fields: Kept) => string
  readonly claims: (fields: Kept, parentId: string | null) => readonly Claim[]
  /** Other resources that the fields refer to. When a delete is refused, its message names the first word of `field`. */
  readonly mentions: (fields: Kept) => readonly Mention[]
  /** Runs at creation, inside the transaction: fills in what the server chooses, such as a free port, or refuses. */
  readonly choose?: (fields: Kept, around: Surroundings, isFree: IsFree) => Promise<Kept>
  /** Fields that list what is online now; the ids are shown as references. */
  readonly live?: (fields: Kept, presence: Presence) => Promise<Readonly<Record<string, readonly string[]>>>
}

/** How a file of this folder describes a stored resource; everything else is derived from this. */
interface StoredSpec<Form extends TProperties, Kept extends Fields>
  extends Pick<Resource, 'kind' | 'about' | 'prefix' | 'access'>,
    Partial<Pick<Resource, 'noun' | 'path' | 'listKey' | 'otherName' | 'parent' | 'embeds' | 'place' | 'modules'>>,
    Partial<AboutFields<Kept>>,
    Partial<Pick<Resource, 'mints' | 'columns' | 'actions' | 'verbs' | 'handlers' | 'routes' | 'clears' | 'price'>> {
  /**
   * Fields of the create body. Fields that are required or have a default are always shown; other fields are null when
   * unset.
   */
  readonly form: Form
  /** Fields of `form` that an update cannot change. */
  readonly fixed?: readonly (keyof Form & string)[]
  /** Fields of the response that are not in `form`, or are shown in another form. */
  readonly shows?: TProperties
  /** Fields of `form` that no response shows. */
  readonly hides?: readonly (keyof Form & string)[]
  /** Checks what a schema cannot express, on every write; returns what is stored. Throws `BadValue` or `Refusal`. */
  readonly settle?: (fields: Static<TObject<Form>>, around: Surroundings) => Kept
  readonly renews?: readonly (keyof Form & string)[]
  readonly make?: (fields: Static<TObject<Form>>, making: Making) => Promise<Kept>
  readonly secrets?: readonly (keyof Kept & string)[]
}

/** Carries a type alone. */
declare const KEPT: unique symbol

/** A resource whose type knows the fields that are stored. */
type Keeping<Kept> = Resource & { readonly [KEPT]?: Kept }

/** The fields of a stored resource. They have passed the forms of that resource, so the cast is safe. */
export function fieldsOf<Kept>(_: Keeping<Kept>, { fields }: { readonly fields: Fields }): Kept {
  return fields as Kept
}

/** Makes the resource that `spec` describes. */
export function storedKind<Form extends TProperties, Kept extends Fields = Static<TObject<Form>> & Fields>(
  spec: StoredSpec<Form, Kept>,
): Keeping<Kept> {
  const { form, fixed = [], shows = {}, hides = [], ...rest } = spec
  const owner = spec.access === 'owner' ? { owner_id: Type.Optional(ownerField) } : {}
  const modules = moduleFields(spec)
  return {
    ...usual(spec.kind),
    verbs:
      spec.listKey === null ? ['create', 'get', 'update', 'delete'] : ['create', 'list', 'get', 'update', 'delete'],
    // The functions of `spec` are only called with fields that passed the forms of this same resource, so the cast is safe.
    ...(rest as Pick<Resource, 'kind' | 'about' | 'prefix' | 'access'> & Partial<Resource>),
    create: closedObject({ ...form, ...owner, ...modules.forms }),
    update: closedObject({ ...forUpdate(without(form, fixed)), ...modules.forms }),
    view: closedObject({
      ...identity(spec),
      ...(viewOf(closedObject(without(form, hides))) as TObject).properties,
      ...shows,
      ...modules.views,
    }),
  }
}

/** What a resource has unless it says otherwise; its names follow from its kind: `IP policy`, `/ip_policies`. */
function usual(kind: string) {
  const listKey = plural(kind)
  return {
    noun: kind.replaceAll('_', ' ').replace(/\b(api|https?|ip|ssh|tcp|tls)\b/, (word) => word.toUpperCase()),
    path: `/${listKey}`,
    listKey,
    commands: [],
    modules: [],
    secrets: [],
    clears: [],
    renews: [],
    settle: (fields: Fields) => fields,
    read: () => ({}),
    claims: () => [],
    mentions: () => [],
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
export function present(spec: UnstoredSpec): Resource {
  return presentKind({ verbs: ['list', 'get'], handlers: { list: 'list_present', get: 'get_present' }, ...spec })
}

/** A resource that visitors make by logging in. */
export function loggedIn(spec: UnstoredSpec): Resource {
  return presentKind({
    verbs: ['list', 'get', 'delete'],
    handlers: { list: 'list_logins', get: 'get_login', delete: 'end_login' },
    ...spec,
  })
}

/** How a file of this folder describes a resource that is not stored. */
interface UnstoredSpec
  extends Pick<Resource, 'kind' | 'about'>,
    Partial<Pick<Resource, 'noun' | 'path' | 'prefix' | 'listKey' | 'columns' | 'filters' | 'access'>>,
    Partial<Pick<Resource, 'commands' | 'verbs' | 'handlers' | 'routes'>> {
  readonly shows: TProperties
}

/** A resource that is not stored; any valid key may read it unless `access` says otherwise. */
export function presentKind({ shows, ...rest }: UnstoredSpec): Resource {
  return {
    ...usual(rest.kind),
    prefix: '',
    verbs: [],
    access: 'account',
    create: closedObject({}),
    update: closedObject({}),
    view: closedObject(shows),
    ...rest,
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
