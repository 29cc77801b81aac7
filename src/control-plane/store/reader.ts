/** All queries that read resources from the database. */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import { CertificateReader } from './certificate-reader.ts'
import { Queries } from './dialect.ts'
import { LoginReader } from './login-reader.ts'
import { OnlineReader } from './online-reader.ts'
import type { Tables } from './tables.ts'

/** A resource as stored, with its modules when it can carry any. */
export interface StoredResource {
  readonly id: string
  readonly kind: string
  readonly parentId: string | null
  readonly ownerId: string | null
  readonly createdAt: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly modules: ReadonlyMap<string, Readonly<Record<string, unknown>>>
}

/** A resource and its owner, both without modules. */
export interface OwnedResource {
  readonly held: StoredResource
  readonly owner: StoredResource
}

/** One module as stored. */
export interface StoredModule {
  readonly hostId: string
  readonly module: string
  readonly config: Readonly<Record<string, unknown>>
}

interface PageOf {
  readonly kind: string
  /** Only this resource. */
  readonly id?: string
  readonly ownerId?: string
  /** Only ids that sort before this one; it need not exist. */
  readonly beforeId?: string
  readonly limit: number
}

/** How much of the database a resource takes: its modules, and its children where `withChildren`, included. */
interface Size {
  readonly id: string
  readonly bytes: number
}

/** A resource that refers to another, and the field or module that refers. */
interface Referrer {
  readonly id: string
  readonly kind: string
  readonly slot: string
}

/** How to follow references upwards: through which kinds of referrers, and how far at most. */
interface Way {
  readonly through: readonly string[]
  readonly levels: number
}

export class Reader extends Queries {
  /** Logins of visitors have their own tables: they are not resources, and come and go by the thousand. */
  get logins(): LoginReader {
    return new LoginReader(this.db, this.facts)
  }

  /** What is online at which node of a cluster. */
  get online(): OnlineReader {
    return new OnlineReader(this.db, this.facts)
  }

  /** Names whose certificates are ordered here, and their challenges. */
  get certificates(): CertificateReader {
    return new CertificateReader(this.db, this.facts)
  }

  /** One resource with its modules, read in one statement and so consistent. */
  async resource(kind: string, id: string): Promise<StoredResource | undefined> {
    const rows = await this.#withModules().where('resources.id', '=', id).where('resources.kind', '=', kind).execute()
    return (await group(rows))[0]
  }

  /** A page of resources, newest first. */
  async page(page: PageOf): Promise<StoredResource[]> {
    const rows = await this.db
      .selectFrom(this.#pageOf(page).selectAll().as('resources'))
      .leftJoin('modules', 'modules.host_id', 'resources.id')
      .selectAll('resources')
      .select(['modules.module', 'modules.config'])
      .orderBy('resources.id', 'desc')
      .execute()
    return group(rows)
  }

  /** The sizes of the resources of a page, newest first; neither database reads the texts for this. */
  async sizes({ withChildren, ...page }: PageOf & { readonly withChildren: boolean }): Promise<Size[]> {
    const rows = await this.#pageOf(page)
      .select(['id', sizeOf('resources', withChildren).as('bytes')])
      .execute()
    return rows.map(({ id, bytes }) => ({ id, bytes: Number(bytes) }))
  }

  #pageOf({ kind, id, ownerId, beforeId, limit }: PageOf) {
    let page = this.db.selectFrom('resources').where('kind', '=', kind)
    if (id !== undefined) page = page.where('id', '=', id)
    if (ownerId !== undefined) page = page.where('owner_id', '=', ownerId)
    if (beforeId !== undefined) page = page.where('id', '<', beforeId)
    return page.orderBy('id', 'desc').limit(limit)
  }

  /** The resources of `kind` that belong to any of `parentIds`, oldest first. */
  async children(kind: string, parentIds: readonly string[]): Promise<StoredResource[]> {
    if (parentIds.length === 0) return []
    // Only by parent: with the kind or the order in the query too, both databases scan every resource of the kind.
    const rows = await this.#withModules().where('resources.parent_id', 'in', parentIds).execute()
    return (await group(rows)).filter((child) => child.kind === kind).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** The resources with these ids that exist, of any kind, with their modules. */
  async resources(ids: readonly string[]): Promise<StoredResource[]> {
    if (ids.length === 0) return []
    return group(await this.#withModules().where('resources.id', 'in', ids).execute())
  }

  /** All resources of one owner, of any kind. */
  async ownedBy(ownerId: string): Promise<Pick<StoredResource, 'id' | 'kind'>[]> {
    return this.db.selectFrom('resources').select(['id', 'kind']).where('owner_id', '=', ownerId).execute()
  }

  /** The kinds of the resources with these ids, as far as they exist. */
  async kinds(ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.db.selectFrom('resources').select(['id', 'kind']).where('id', 'in', ids).execute()
    return new Map(rows.map((row) => [row.id, row.kind]))
  }

  /** The id of the resource that holds a claim. */
  async holder(scope: string, key: string): Promise<string | undefined> {
    return (await this.holders([scope], [key]))[0]?.holderId
  }

  /** The holders of any of `keys` in any of `scopes`, in one statement. */
  async holders(
    scopes: readonly string[],
    keys: readonly string[],
  ): Promise<{ readonly scope: string; readonly key: string; readonly holderId: string }[]> {
    const rows = await this.db
      .selectFrom('claims')
      .select(['scope', 'key', 'holder_id'])
      .where('scope', 'in', scopes)
      .where('key', 'in', keys)
      .execute()
    return rows.map(({ scope, key, holder_id }) => ({ scope, key, holderId: holder_id }))
  }

  /**
   * The holders of any of `keys` in `scope` with their owners, in one statement; those that have none are left out. Every API
   * call finds its key's owner this way.
   */
  async holdersWithOwners(scope: string, keys: readonly string[]): Promise<(OwnedResource & { key: string })[]> {
    if (keys.length === 0) return []
    const rows = await this.db
      .selectFrom('claims')
      .innerJoin('resources as held', 'held.id', 'claims.holder_id')
      .innerJoin('resources as owner', 'owner.id', 'held.owner_id')
      .selectAll('owner')
      .select(['claims.key', ...heldColumns])
      .where('claims.scope', '=', scope)
      .where('claims.key', 'in', keys)
      .execute()
    return rows.map((row) => ({ key: row.key, ...ownedResource(row) }))
  }

  /** The resources with these ids with their owners, in one statement; those that have none are left out. */
  async withOwners(ids: readonly string[]): Promise<OwnedResource[]> {
    if (ids.length === 0) return []
    const rows = await this.db
      .selectFrom('resources as held')
      .innerJoin('resources as owner', 'owner.id', 'held.owner_id')
      .selectAll('owner')
      .select(heldColumns)
      .where('held.id', 'in', ids)
      .execute()
    return rows.map(ownedResource)
  }

  /** Resources that refer to `id`, oldest first, at most `limit`. */
  async referrers(id: string, limit: number): Promise<Referrer[]> {
    return this.db
      .selectFrom('refs')
      .innerJoin('resources', 'resources.id', 'refs.from_id')
      .select(['resources.id', 'resources.kind', 'refs.slot'])
      .where('refs.to_id', '=', id)
      .orderBy('resources.id')
      .limit(limit)
      .execute()
  }

  /** The kinds, by id, of all resources that any of `ids` refers to. */
  async referredBy(ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.db
      .selectFrom('refs')
      .innerJoin('resources', 'resources.id', 'refs.to_id')
      .select(['resources.id', 'resources.kind'])
      .where('refs.from_id', 'in', ids)
      // The order is not needed, but without it PostgreSQL scans all references while it has no statistics.
      .orderBy('refs.from_id')
      .execute()
    return new Map(rows.map((row) => [row.id, row.kind]))
  }

  /** How many levels of referrers there are above `id`, following `way`. */
  async levelsAbove(id: string, way: Way): Promise<number> {
    const row = await this.#above(id, way)
      .selectFrom('above')
      .select((eb) => eb.fn.max('level').as('levels'))
      .executeTakeFirst()
    return row?.levels ?? 0
  }

  /** The first resource of `kinds` that refers to `id`, directly or along `way`. */
  async referrerThrough(id: string, way: Way, kinds: readonly string[]): Promise<string | undefined> {
    const row = await this.#above(id, way)
      .selectFrom('above')
      .innerJoin('refs', 'refs.to_id', 'above.id')
      .innerJoin('resources', 'resources.id', 'refs.from_id')
      .select('resources.id')
      .where('resources.kind', 'in', kinds)
      .orderBy('resources.id')
      .limit(1)
      .executeTakeFirst()
    return row?.id
  }

  /** All resources of `kinds` that refer to `id`, directly or along `way`. */
  async referrersThrough(
    id: string,
    way: Way,
    kinds: readonly string[],
  ): Promise<Pick<StoredResource, 'id' | 'kind' | 'parentId'>[]> {
    const rows = await this.#above(id, way)
      .selectFrom('above')
      .innerJoin('refs', 'refs.to_id', 'above.id')
      .innerJoin('resources', 'resources.id', 'refs.from_id')
      .select(['resources.id', 'resources.kind', 'resources.parent_id'])
      .distinct()
      .where('resources.kind', 'in', kinds)
      .execute()
    return rows.map(({ id, kind, parent_id }) => ({ id, kind, parentId: parent_id }))
  }

  #above(id: string, { through, levels }: Way) {
    return this.db.withRecursive('above(id, level)', (db) =>
      db
        .selectFrom('resources')
        .select(['resources.id', sql<number>`0`.as('level')])
        .where('resources.id', '=', id)
        .union(
          db
            .selectFrom('above')
            .innerJoin('refs', 'refs.to_id', 'above.id')
            .innerJoin('resources', 'resources.id', 'refs.from_id')
            .select(['resources.id', sql<number>`above.level + 1`.as('level')])
            .where('resources.kind', 'in', through)
            .where('above.level', '<', levels),
        ),
    )
  }

  async meta(key: string): Promise<string | undefined> {
    const row = await this.db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst()
    return row?.value
  }

  /** The values of these facts, by their keys. */
  async metas(keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (keys.length === 0) return new Map()
    const rows = await this.db.selectFrom('meta').selectAll().where('key', 'in', keys).execute()
    return new Map(rows.map(({ key, value }) => [key, value]))
  }

  /** Modules with one of `names`, at most `limit`; pass the last one as `after` to get the next ones. */
  async modulesNamed(
    names: readonly string[],
    { after, limit }: { after: Pick<StoredModule, 'hostId' | 'module'> | null; limit: number },
  ): Promise<StoredModule[]> {
    let some = this.db.selectFrom('modules').selectAll().where('module', 'in', names)
    if (after) {
      some = some.where((eb) =>
        eb.or([
          eb('host_id', '>', after.hostId),
          eb.and([eb('host_id', '=', after.hostId), eb('module', '>', after.module)]),
        ]),
      )
    }
    const rows = await some.orderBy('host_id').orderBy('module').limit(limit).execute()
    return rows.map(({ host_id, module, config }) => ({ hostId: host_id, module, config: JSON.parse(config) }))
  }

  #withModules() {
    return this.db
      .selectFrom('resources')
      .leftJoin('modules', 'modules.host_id', 'resources.id')
      .selectAll('resources')
      .select(['modules.module', 'modules.config'])
  }
}

/** The columns of a resource beside those of its owner, whose id is `owner_id` of the resource. */
const heldColumns = [
  'held.id as held_id',
  'held.kind as held_kind',
  'held.parent_id as held_parent_id',
  'held.created_at as held_created_at',
  'held.fields as held_fields',
] as const

type Row = Selectable<Tables['resources']>
type OwnedRow = Row & { readonly [Column in Exclude<keyof Row, 'owner_id'> as `held_${Column}`]: Row[Column] }

/** The bytes of a resource; `table` is the name of `resources` in the query. */
function sizeOf(table: string, withChildren: boolean): RawBuilder<number> {
  const [id, fields] = [sql.ref(`${table}.id`), sql.ref(`${table}.fields`)]
  const modules = sql`coalesce((select sum(octet_length(config)) from modules where host_id = ${id}), 0)`
  if (!withChildren) return sql`octet_length(${fields}) + ${modules}`
  const children = sql`(select sum(${sizeOf('child', false)}) from resources as child where child.parent_id = ${id})`
  return sql`octet_length(${fields}) + ${modules} + coalesce(${children}, 0)`
}

/** Turns joined rows, one for each module, into resources in the same order; many may take megabytes together. */
async function group(
  rows: readonly (Row & { module: string | null; config: string | null })[],
): Promise<StoredResource[]> {
  const breath = othersTurn()
  const found = new Map<string, StoredResource & { modules: Map<string, Record<string, unknown>> }>()
  for (const row of rows) {
    await breath()
    let resource = found.get(row.id)
    if (!resource) {
      resource = { ...storedResource(row), modules: new Map() }
      found.set(row.id, resource)
    }
    if (row.module !== null && row.config !== null) resource.modules.set(row.module, JSON.parse(row.config))
  }
  return [...found.values()]
}

function storedResource(row: Row): StoredResource {
  return {
    id: row.id,
    kind: row.kind,
    parentId: row.parent_id,
    ownerId: row.owner_id,
    createdAt: row.created_at,
    fields: JSON.parse(row.fields),
    modules: new Map(),
  }
}

function ownedResource(row: OwnedRow): OwnedResource {
  const held = {
    id: row.held_id,
    kind: row.held_kind,
    parent_id: row.held_parent_id,
    owner_id: row.id,
    created_at: row.held_created_at,
    fields: row.held_fields,
  }
  return { held: storedResource(held), owner: storedResource(row) }
}
