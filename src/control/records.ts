/** Create, list, get, update and delete for every stored resource: one transaction each, by the resource's own rules. */
import type { Clock } from '../lib/clock.ts'
import { timestamp } from '../lib/clock.ts'
import { type IdSource, randomText } from '../lib/ids.ts'
import type { Sealer } from '../lib/seal.ts'
import { Refusal } from '../model/errors.ts'
import type { Presence } from '../model/presence.ts'
import { moduleConflicts, modulesAt } from '../modules/index.ts'
import type { Mention, Module, ModuleConfig } from '../modules/module.ts'
import { moduleMentions } from '../modules/view.ts'
import { resourceOf } from '../resources/index.ts'
import type { Claim, Fields, Resource, Surroundings } from '../resources/resource.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import { type Store, StoreConflict } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { type Principal, tokenHash } from './principal.ts'
import { checkClaims, checkMentions, checkUnreferenced } from './references.ts'
import { openConfig, sealConfig } from './secrets.ts'
import type { Complete } from './show.ts'

/** Which one: a resource's id, and its parent's where the path names it. */
export interface Target {
  readonly id: string
  readonly parentId?: string
}

export interface ListPage {
  readonly records: readonly Complete[]
  readonly hasMore: boolean
}

/** What records stand on. */
export interface RecordsOptions {
  readonly store: Store
  readonly ids: IdSource
  readonly now: Clock
  readonly sealer: Sealer
  readonly around: Surroundings
  readonly presence: Presence
}

/** What a write keeps: its own fields, and the modules it names. */
interface Parts {
  readonly own: Record<string, unknown>
  readonly modules: readonly { readonly module: Module; readonly config: ModuleConfig }[]
}

export class Records {
  readonly #store: Store
  readonly #ids: IdSource
  readonly #now: Clock
  readonly #sealer: Sealer
  readonly #around: Surroundings
  readonly #presence: Presence

  constructor(options: RecordsOptions) {
    this.#store = options.store
    this.#ids = options.ids
    this.#now = options.now
    this.#sealer = options.sealer
    this.#around = options.around
    this.#presence = options.presence
  }

  /** Stores a new resource; `input` has passed the resource's create schema. */
  async create(resource: Resource, principal: Principal, input: Fields, parentId: string | null): Promise<Complete> {
    const { owner_id, ...rest } = input
    const { own, modules } = this.#parts(resource, resource.access === 'owner' ? rest : input)
    const { parent } = resource
    const parentKey = parent?.in === 'body' ? String(own[parent.field]) : parentId
    if (parent?.in === 'body') delete own[parent.field]
    const fields = resource.settle(own, this.#around)
    checkTogether(resource, new Map(modules.map(({ module, config }) => [module.name, config])))

    return this.#conflictAsRefusal(() =>
      this.#store.write(async (writer) => {
        if (parent) await requireParent(writer, resource, parentKey)
        const ownerId =
          resource.access === 'owner'
            ? await owner(writer, principal, typeof owner_id === 'string' ? owner_id : '')
            : null
        const id = this.#ids.next(resource.prefix)
        const token = resource.mints ? `${id.slice(resource.prefix.length)}_${randomText()}` : null
        const claims = [...resource.claims(fields, parentKey)]
        if (resource.mints && token) claims.push(tokenClaim(resource.mints.scope, token))
        await checkMentions(writer, mentionsOf(resource, modules))
        await checkClaims(writer, claims, null)

        const createdAt = timestamp(this.#now())
        await writer.insert({ id, kind: resource.kind, parentId: parentKey, ownerId, createdAt, fields })
        await setClaims(writer, id, claims, true)
        await this.#putModules(writer, resource, id, modules, true)
        writer.changed(...rootOf(resource, id, parentKey))
        const plain = new Map(modules.map(({ module, config }) => [module.name, config]))
        const made = { id, kind: resource.kind, parentId: parentKey, ownerId, createdAt, fields, modules: plain }
        return { ...made, token, children: [], live: (await resource.live?.(fields, this.#presence)) ?? {} }
      }),
    )
  }

  async list(
    resource: Resource,
    principal: Principal,
    { limit, beforeId }: { limit: number; beforeId?: string },
  ): Promise<ListPage> {
    return this.#store.read(async (reader) => {
      const found = await reader.page({
        kind: resource.kind,
        // One more than asked for tells whether a next page would be empty.
        limit: limit + 1,
        ...(beforeId !== undefined && { beforeId }),
        ...(seesOnlyOwn(resource, principal) && { ownerId: principal.id }),
      })
      const page = found.slice(0, limit)
      return { records: await this.#complete(reader, resource, page), hasMore: found.length > limit }
    })
  }

  async get(resource: Resource, principal: Principal, target: Target): Promise<Complete> {
    return this.#store.read(async (reader) => {
      const found = visible(resource, principal, target, await reader.resource(resource.kind, target.id))
      return only(await this.#complete(reader, resource, [found]))
    })
  }

  /** D10: what `input` does not name stays as it is; a module it names is replaced whole. */
  async update(resource: Resource, principal: Principal, target: Target, input: Fields): Promise<Complete> {
    const { own, modules } = this.#parts(resource, input)
    return this.#conflictAsRefusal(() =>
      this.#store.write(async (writer) => {
        const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        const { id, parentId } = before
        if (Object.keys(own).length > 0) {
          const fields = resource.settle({ ...before.fields, ...own }, this.#around)
          const claims = resource.claims(fields, parentId)
          await checkClaims(writer, claims, id)
          await writer.replaceFields(id, fields)
          await setClaims(writer, id, claims, false)
        }
        if (modules.length > 0) {
          checkTogether(resource, merged(this.#opened(resource, before), modules))
          await checkMentions(writer, mentionsOf(resource, modules))
          await this.#putModules(writer, resource, id, modules, false)
        }
        if (Object.keys(input).length > 0) writer.changed(...rootOf(resource, id, parentId))
        return this.#reread(writer, resource, id)
      }),
    )
  }

  async remove(resource: Resource, principal: Principal, target: Target): Promise<void> {
    await this.#conflictAsRefusal(() =>
      this.#store.write(async (writer) => {
        const { id, parentId } = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        await checkUnreferenced(writer, resource, id)
        // D24: keys and credentials go with their owner, and whoever serves their sessions must hear of it.
        for (const owned of await writer.ownedBy(id)) writer.changed(owned.kind, owned.id)
        await writer.remove(id)
        writer.changed(...rootOf(resource, id, parentId))
      }),
    )
  }

  /** Replaces one module of an edge or route and gives it back as stored. */
  async putModule(
    resource: Resource,
    principal: Principal,
    target: Target,
    module: Module,
    input: ModuleConfig,
  ): Promise<ModuleConfig> {
    const config = accepted(module, resource, input, '')
    const modules = [{ module, config }]
    return this.#conflictAsRefusal(() =>
      this.#store.write(async (writer) => {
        const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        checkTogether(resource, merged(this.#opened(resource, before), modules))
        await checkMentions(writer, mentionsOf(resource, modules, false))
        await this.#putModules(writer, resource, before.id, modules, !before.modules.has(module.name))
        writer.changed(...rootOf(resource, before.id, before.parentId))
        return config
      }),
    )
  }

  async getModule(resource: Resource, principal: Principal, target: Target, module: Module): Promise<ModuleConfig> {
    const found = await this.#store.read((reader) => reader.resource(resource.kind, target.id))
    const config = visible(resource, principal, target, found).modules.get(module.name)
    if (!config) {
      const msg = `the module \`${module.name}\` of this ${resource.noun} is not set; PUT it first`
      throw new Refusal('MODULE_NOT_SET', msg)
    }
    return openConfig(this.#sealer, module, config as ModuleConfig)
  }

  /** D29: removing a module that is not set changes nothing and is no error. */
  async removeModule(resource: Resource, principal: Principal, target: Target, module: Module): Promise<void> {
    await this.#store.write(async (writer) => {
      const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
      if (!before.modules.has(module.name)) return
      const rest = merged(this.#opened(resource, before), [])
      rest.delete(module.name)
      checkTogether(resource, rest)
      await writer.removeModule(before.id, module.name)
      await writer.setReferences(before.id, module.name, [], false)
      writer.changed(...rootOf(resource, before.id, before.parentId))
    })
  }

  /** Splits a body into the resource's own fields and its modules, each accepted by its module. */
  #parts(resource: Resource, input: Fields): Parts {
    const own: Record<string, unknown> = { ...input }
    const modules: { module: Module; config: ModuleConfig }[] = []
    for (const module of resource.place ? modulesAt(resource.place) : []) {
      const given = own[module.name]
      delete own[module.name]
      if (given === undefined) continue
      // The resource's schema holds the module's own, which has checked this value.
      modules.push({ module, config: accepted(module, resource, given as ModuleConfig, `${module.name}.`) })
    }
    return { own, modules }
  }

  async #putModules(
    writer: Writer,
    resource: Resource,
    id: string,
    modules: Parts['modules'],
    isNew: boolean,
  ): Promise<void> {
    for (const { module, config } of modules) {
      await writer.putModule(id, module.name, sealConfig(this.#sealer, module, config))
      const ids = mentionsOf(resource, [{ module, config }]).map((mention) => mention.id)
      await writer.setReferences(id, module.name, ids, isNew)
    }
  }

  async #reread(reader: Reader, resource: Resource, id: string): Promise<Complete> {
    const found = await reader.resource(resource.kind, id)
    return only(await this.#complete(reader, resource, found ? [found] : []))
  }

  /** Adds what an answer needs beyond the row: opened secrets, children, and what is online. */
  async #complete(reader: Reader, resource: Resource, found: readonly StoredResource[]): Promise<Complete[]> {
    const { embeds, live } = resource
    const children = new Map<string, Complete[]>(found.map(({ id }) => [id, []]))
    if (embeds) {
      const child = resourceOf(embeds.kind)
      const rows = await reader.children(child.kind, [...children.keys()])
      for (const each of await this.#complete(reader, child, rows)) children.get(each.parentId ?? '')?.push(each)
    }
    return Promise.all(
      found.map(async (each) => ({
        ...each,
        modules: this.#opened(resource, each),
        children: children.get(each.id) ?? [],
        live: live ? await live(each.fields, this.#presence) : {},
        token: null,
      })),
    )
  }

  #opened(resource: Resource, { modules }: StoredResource): StoredResource['modules'] {
    const opened = new Map(modules)
    for (const module of resource.place ? modulesAt(resource.place) : []) {
      const config = modules.get(module.name)
      if (module.secrets && config) opened.set(module.name, openConfig(this.#sealer, module, config as ModuleConfig))
    }
    return opened
  }

  /**
   * The checks inside a transaction name what is wrong; the database's own constraints hold when somebody was faster.
   * Then the second try meets the checks.
   */
  async #conflictAsRefusal<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error
    }
    try {
      return await write()
    } catch (cause) {
      if (cause instanceof StoreConflict) throw new Refusal('CONFLICT', undefined, { cause })
      throw cause
    }
  }
}

function accepted(module: Module, { place }: Resource, config: ModuleConfig, at: string): ModuleConfig {
  return place && module.accept ? module.accept(config, { place, at }) : config
}

function checkTogether({ place }: Resource, configs: ReadonlyMap<string, ModuleConfig>): void {
  if (place) moduleConflicts(place, configs)
}

/** The modules as they would be once `modules` are written; `before` are opened, since a module judges by its secrets too. */
function merged(before: StoredResource['modules'], modules: Parts['modules']): Map<string, ModuleConfig> {
  const all = new Map(before as ReadonlyMap<string, ModuleConfig>)
  for (const { module, config } of modules) all.set(module.name, config)
  return all
}

function mentionsOf({ place }: Resource, modules: Parts['modules'], insideBody = true): Mention[] {
  if (!place) return []
  return modules.flatMap(({ module, config }) =>
    moduleMentions(module, place, config).map((mention) =>
      insideBody ? { ...mention, field: `${module.name}.${mention.field}` } : mention,
    ),
  )
}

/** D22: what a member may not see is not there. D29: a route under another edge is not there either. */
function visible(
  resource: Resource,
  principal: Principal,
  { parentId }: Target,
  found: StoredResource | undefined,
): StoredResource {
  const isThere =
    found !== undefined &&
    (parentId === undefined || found.parentId === parentId) &&
    (!seesOnlyOwn(resource, principal) || found.ownerId === principal.id)
  if (!isThere) throw new Refusal('NOT_FOUND', `there is no ${resource.noun} with this id`)
  return found
}

function seesOnlyOwn(resource: Resource, principal: Principal): boolean {
  return resource.access === 'owner' && principal.role !== 'admin'
}

async function requireParent(reader: Reader, { parent }: Resource, parentId: string | null): Promise<void> {
  if (!parent || parentId === null) throw new Error('a resource with a parent needs its id')
  if (parent.in === 'body') {
    return checkMentions(reader, [{ field: parent.field, id: parentId, kinds: [parent.kind] }])
  }
  const kinds = await reader.kinds([parentId])
  if (kinds.get(parentId) !== parent.kind) {
    throw new Refusal('NOT_FOUND', `there is no ${resourceOf(parent.kind).noun} with this id`)
  }
}

/** D23: the caller, unless an admin names somebody else who exists. */
async function owner(reader: Reader, principal: Principal, named: string): Promise<string> {
  if (named === '' || named === principal.id) return principal.id
  if (principal.role !== 'admin') throw new Refusal('OWNER_NOT_ALLOWED')
  const kind = (await reader.kinds([named])).get(named)
  if (kind !== 'user' && kind !== 'bot_user') {
    throw new Refusal('UNKNOWN_OWNER', '`owner_id`: there is no user or bot with this id')
  }
  return named
}

/** What a change is filed under: data planes load an edge with its routes, a policy with its rules. */
function rootOf(resource: Resource, id: string, parentId: string | null): [kind: string, id: string] {
  return resource.parent && parentId ? [resource.parent.kind, parentId] : [resource.kind, id]
}

async function setClaims(writer: Writer, id: string, claims: readonly Claim[], isNew: boolean): Promise<void> {
  const byScope = Map.groupBy(claims, ({ scope }) => scope)
  for (const [scope, group] of byScope)
    await writer.setClaims(
      id,
      scope,
      group.map(({ key }) => key),
      isNew,
    )
}

function tokenClaim(scope: string, token: string): Claim {
  return { scope, key: tokenHash(token), taken: { code: 'CONFLICT', msg: 'that token is taken' } }
}

function only(records: readonly Complete[]): Complete {
  const [record] = records
  if (!record) throw new Error('a resource that was just there is gone')
  return record
}
