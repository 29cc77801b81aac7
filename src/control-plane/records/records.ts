/** Creates, lists, gets, updates and deletes stored resources of every kind: one transaction each, by the resource's own rules. */
import { timestamp } from '../../lib/clock.ts'
import { randomText } from '../../lib/ids.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import { Refusal } from '../../model/errors.ts'
import type { Presence } from '../../model/presence.ts'
import type { Mention } from '../../modules/module.ts'
import { EDGE_NAMES } from '../resources/hostports.ts'
import { resourceOf } from '../resources/index.ts'
import { RESERVED_NAMES } from '../resources/reserved-domains.ts'
import type { Claim, Fields, Resource, Surroundings } from '../resources/resource.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import type { Documents } from './check-documents.ts'
import { checkClaims, checkMentions, checkUnreferenced, setClaims, setMentions } from './check-references.ts'
import { type Principal, tokenHash } from './find-caller.ts'
import { refuseKeptCertificate } from './kept-certificates.ts'
import type { KeyMaker } from './key-maker.ts'
import { checkTogether, mentionsOf, openModules, replaceModules, splitModules, writeModules } from './module-rows.ts'
import { checkNesting } from './nesting.ts'
import { ownerOf, type ResourceTarget, seesOnlyOwn, visible } from './ownership.ts'
import { fitting, inPieces, LARGE_BYTES, PAGE_BYTES, PAGE_REFS, refsIn } from './page-bounds.ts'
import { vouchFor } from './proven-names.ts'
import { checkServed } from './remote-address-check.ts'
import { attempt } from './retry-on-conflict.ts'
import { openFields, resourceAt, sealFields } from './sealed-fields.ts'
import { holdKey } from './sealing.ts'
import type { Complete } from './show-resource.ts'
import { type ShowingModules, withShownAt } from './shown-at.ts'
import { checkRules } from './write-rules.ts'

/** What records need. */
interface RecordsOptions extends Pick<ControlTools, 'store' | 'sealer' | 'ids' | 'now'> {
  readonly around: Surroundings
  /** This node, where there may be others. */
  readonly nodeId?: string | undefined
  readonly presence: Presence
  readonly checks: Pick<Documents, 'readModule' | 'settle'>
  readonly keys: Pick<KeyMaker, 'make'>
  readonly requestKey: ShowingModules['requestKey']
  /** Why a member, `owner`, may not hold a name; undefined when any name may be held. */
  readonly whyNotProven?: ((name: string, owner: string) => Promise<string | undefined>) | undefined
}

export class Records {
  readonly #options: RecordsOptions

  constructor(options: RecordsOptions) {
    this.#options = options
  }

  /** Stores a new resource; `input` has passed the resource's create schema. */
  async create(
    resource: Resource,
    principal: Principal,
    input: Fields,
    parentInPath: string | null,
  ): Promise<Complete> {
    const { own, modules: writes } = await splitModules({ checks: this.#options.checks, principal }, resource, input)
    const named = take(own, resource.access === 'owner' ? 'owner_id' : null)
    const parentInBody = take(own, resource.parent?.in === 'body' ? resource.parent.field : null)
    const parentId = typeof parentInBody === 'string' ? parentInBody : parentInPath
    const settled = await this.#options.checks.settle(principal.id, resource, own, this.#options.around)
    checkTogether(this.#options.sealer, resource, { id: '', modules: new Map() }, { writes })
    await this.#checkProven(principal, namesIn(resource.claims(settled, parentId)))
    const prepared = await this.#prepared(resource, principal, settled)

    const made = await attempt<Complete>(() =>
      this.#options.store.write(async (writer) => {
        if (parentId !== null) await requireParent(writer, resource, parentId)
        const fields = await this.#chosen(writer, resource, prepared.fields)
        const ownerId = resource.access === 'owner' ? await ownerOf(writer, principal, named) : null
        await checkRules(writer, { resource, principal, parentId, ownerId, before: null, after: fields })
        refuseKeptCertificate(resource, principal, { after: fields }, this.#options.around)
        const id = prepared.id ?? this.#options.ids.next(resource.prefix)
        const token = resource.mints ? `${id.slice(resource.prefix.length)}_${randomText()}` : null
        const claims = [...resource.claims(fields, parentId)]
        if (resource.mints && token) claims.push(tokenClaim(resource.mints.scope, token))
        refuseKept(claims, [], this.#options.around)
        const mentions = resource.mentions(fields)
        const allMentions = [...mentions, ...mentionsOf(resource, writes)]
        await checkMentions(writer, allMentions)
        await checkNesting(writer, resource, null, allMentions)
        await checkClaims(writer, claims, null)
        await checkServed(writer, claims, this.#options.nodeId)

        const row = { id, kind: resource.kind, parentId, ownerId, createdAt: timestamp(this.#options.now()), fields }
        if (resource.secrets.length > 0) await holdKey(writer, this.#options.sealer)
        await writer.insert({
          ...row,
          fields: sealFields(this.#options.sealer, resource.secrets, fields, resourceAt(id)),
        })
        await setClaims(writer, id, claims, [])
        await setMentions(writer, id, mentions, [])
        await writeModules(writer, this.#options.sealer, resource, { id, modules: new Map() }, writes)
        writer.changed(...rootOf(resource, row))
        const modules = new Map(writes.map(({ module, config }) => [module.name, config]))
        if (this.#mayVouch(principal)) await vouchFor(writer, namesIn(claims))
        const fact = resource.fact && (await writer.meta(resource.fact(fields)))
        return { ...row, modules, token, children: [], live: await this.#live(resource, fields), fact }
      }),
    )
    return withShownAt(made, this.#options)
  }

  /** A page of what the caller may see, newest first, which ends early when it takes much. `whenLarge` is awaited before that. */
  async list(
    resource: Resource,
    principal: Principal,
    { limit, beforeId }: { limit: number; beforeId?: string },
    whenLarge: () => Promise<void> = async () => {},
  ): Promise<{ records: readonly Complete[]; hasMore: boolean }> {
    const { store } = this.#options
    const page = {
      kind: resource.kind,
      ...(beforeId !== undefined && { beforeId }),
      ...(seesOnlyOwn(resource, principal) && { ownerId: principal.id }),
    }
    // One more than asked for, to know whether there is a next page.
    const asked = { ...page, limit: limit + 1, withChildren: resource.embeds !== undefined }
    const sizes = await store.read((reader) => reader.sizes(asked))
    const bytes = sizes.slice(0, limit).map((size) => size.bytes)
    const count = fitting(bytes, PAGE_BYTES)
    // How many tunnels are online shows only when they are read.
    if (resource.live || bytes.slice(0, count).reduce((a, b) => a + b, 0) > LARGE_BYTES) await whenLarge()
    const found = await inPieces(bytes.slice(0, count), beforeId, (piece) =>
      store.read(async (reader) => this.#complete(reader, resource, await reader.page({ ...page, ...piece }))),
    )
    const records: Complete[] = []
    const shown = fitting(
      found.map(({ live }) => refsIn(live)),
      PAGE_REFS,
    )
    for (const each of found.slice(0, shown)) records.push(await withShownAt(each, this.#options))
    return { records, hasMore: shown < found.length || sizes.length > count }
  }

  /** Whether the answer for one resource is large: only an edge can be, with all its routes. */
  async isLarge({ kind, embeds }: Resource, id: string): Promise<boolean> {
    if (!embeds) return false
    const asked = { kind, id, limit: 1, withChildren: true }
    const [size] = await this.#options.store.read((reader) => reader.sizes(asked))
    return size !== undefined && size.bytes > LARGE_BYTES
  }

  async get(resource: Resource, principal: Principal, target: ResourceTarget): Promise<Complete> {
    const found = await this.#options.store.read(async (reader) => {
      const row = visible(resource, principal, target, await reader.resource(resource.kind, target.id))
      return only(await this.#complete(reader, resource, [row]))
    })
    return withShownAt(found, this.#options)
  }

  /**
   * D10: fields that `input` does not name stay as they are; a module that it names is replaced. `cleared` is unset.
   */
  async update(
    resource: Resource,
    principal: Principal,
    target: ResourceTarget,
    input: Fields,
    cleared: string | null = null,
  ): Promise<Complete> {
    const { own, modules: writes } = await splitModules({ checks: this.#options.checks, principal }, resource, input)
    if (cleared !== null) own[cleared] = undefined
    await this.#checkNewNames(resource, principal, target, own)
    const renewed = await this.#renewed(resource, principal, target, own)
    const changed = await attempt(() =>
      this.#options.store.write(async (writer) => {
        const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        const { id, parentId } = before
        if (Object.keys(own).length > 0) {
          const old = openFields(this.#options.sealer, resource.secrets, before.fields, resourceAt(id))
          const changed = { ...old, ...own }
          const fields = resource.price ? renewed(changed) : resource.settle(changed, this.#options.around)
          await checkRules(writer, { resource, principal, parentId, before, after: fields })
          refuseKeptCertificate(resource, principal, { before: old, after: fields }, this.#options.around)
          const [claims, mentions] = [resource.claims(fields, parentId), resource.mentions(fields)]
          const oldMentions = resource.mentions(old)
          const oldClaims = resource.claims(old, parentId)
          refuseKept(claims, oldClaims, this.#options.around)
          await checkMentions(writer, mentions)
          if (!sameIds(mentions, oldMentions)) await checkNesting(writer, resource, id, mentions)
          await checkClaims(writer, claims, id)
          await checkServed(writer, claims, this.#options.nodeId)
          if (resource.secrets.length > 0) await holdKey(writer, this.#options.sealer)
          await writer.replaceFields(id, sealFields(this.#options.sealer, resource.secrets, fields, resourceAt(id)))
          await setClaims(writer, id, claims, oldClaims)
          if (this.#mayVouch(principal)) {
            const held = new Set(namesIn(oldClaims))
            const names = namesIn(claims).filter((name) => !held.has(name))
            await vouchFor(writer, names)
          }
          await setMentions(writer, id, mentions, oldMentions)
        }
        if (writes.length > 0) {
          await replaceModules(writer, this.#options.sealer, resource, before, writes)
        }
        if (Object.keys(own).length + writes.length > 0) writer.changed(...rootOf(resource, before))
        const after = await writer.resource(resource.kind, id)
        return only(await this.#complete(writer, resource, after ? [after] : []))
      }),
    )
    return withShownAt(changed, this.#options)
  }

  async remove(resource: Resource, principal: Principal, target: ResourceTarget): Promise<void> {
    await attempt(() =>
      this.#options.store.write(async (writer) => {
        const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        await checkRules(writer, { resource, principal, parentId: before.parentId, before, after: null })
        await checkUnreferenced(writer, resource, before.id)
        // D24: keys and credentials are deleted with their owner; their changes in the feed end their sessions.
        for (const owned of await writer.ownedBy(before.id)) writer.changed(owned.kind, owned.id)
        await writer.remove(before.id)
        writer.changed(...rootOf(resource, before))
      }),
    )
  }

  /** Adds what an answer needs beyond the row: opened secrets, children, and what is online. */
  async #complete(reader: Reader, resource: Resource, found: readonly StoredResource[]): Promise<Complete[]> {
    const children = new Map<string, Complete[]>(found.map(({ id }) => [id, []]))
    if (resource.embeds) {
      const child = resourceOf(resource.embeds.kind)
      const rows = await reader.children(child.kind, [...children.keys()])
      for (const each of await this.#complete(reader, child, rows)) children.get(each.parentId ?? '')?.push(each)
    }
    const facts = await reader.metas(found.flatMap(({ fields }) => resource.fact?.(fields) ?? []))
    const breath = othersTurn()
    const complete: Complete[] = []
    for (const each of found) {
      complete.push({
        ...each,
        fields: openFields(this.#options.sealer, resource.secrets, each.fields, resourceAt(each.id)),
        modules: openModules(this.#options.sealer, resource, each),
        children: children.get(each.id) ?? [],
        live: await this.#live(resource, each.fields),
        fact: resource.fact && facts.get(resource.fact(each.fields)),
        token: null,
      })
      // A page may hold a hundred documents of a megabyte.
      await breath()
    }
    return complete
  }

  /** Does slow work before the transaction, for an id that is chosen in advance. */
  async #prepared(
    resource: Resource,
    principal: Principal,
    fields: Fields,
  ): Promise<{ readonly id?: string; readonly fields: Fields }> {
    if (!resource.make) return { fields }
    const id = this.#options.ids.next(resource.prefix)
    const made = await resource.make(fields, {
      id,
      now: this.#options.now,
      keyPair: (choice) => this.#options.keys.make(principal.id, choice),
      fieldsOf: (mention) => this.#options.store.read((reader) => this.#fieldsOf(reader, mention)),
    })
    return { id, fields: made }
  }

  /**
   * How an update changes the fields of a resource with a price: not at all, unless it names fields for which `settle` must run
   * again. That takes long, so it runs before the transaction, and is valid only for the fields that were read then.
   */
  async #renewed(
    resource: Resource,
    principal: Principal,
    target: ResourceTarget,
    own: Fields,
  ): Promise<(fields: Fields) => Fields> {
    if (!resource.renews.some((name) => own[name] !== undefined)) return (fields) => fields
    const { id, fields } = await this.#options.store.read(async (reader) =>
      visible(resource, principal, target, await reader.resource(resource.kind, target.id)),
    )
    const given = { ...openFields(this.#options.sealer, resource.secrets, fields, resourceAt(id)), ...own }
    const settled = await this.#options.checks.settle(principal.id, resource, given, this.#options.around)
    const derived = Object.entries(settled).filter(([name]) => !Object.hasOwn(resource.update.properties, name))
    return (current) => {
      // Another update came between, so the fields that were checked together are not those that would be stored.
      if (resource.renews.some((name) => current[name] !== settled[name])) throw new Refusal('CONFLICT')
      return { ...current, ...Object.fromEntries(derived) }
    }
  }

  /** Checks new names before the transaction, since that asks the DNS. */
  async #checkNewNames(resource: Resource, principal: Principal, target: ResourceTarget, own: Fields): Promise<void> {
    if (!this.#options.whyNotProven || principal.role === 'admin' || own.hostports === undefined) return
    const { fields, parentId } = await this.#options.store.read(async (reader) =>
      visible(resource, principal, target, await reader.resource(resource.kind, target.id)),
    )
    const before = new Set(namesIn(resource.claims(fields, parentId)))
    const after = namesIn(resource.claims(resource.settle({ ...fields, ...own }, this.#options.around), parentId))
    await this.#checkProven(
      principal,
      after.filter((name) => !before.has(name)),
    )
  }

  async #checkProven({ id, role }: Principal, names: readonly string[]): Promise<void> {
    if (role === 'admin') return
    for (const name of names) {
      const why = await this.#options.whyNotProven?.(name, id)
      if (why !== undefined) throw new Refusal('NAME_NOT_PROVEN', why)
    }
  }

  /** Where names must be proven, an admin vouches for the names it assigns. */
  #mayVouch({ role }: Principal): boolean {
    return role === 'admin' && this.#options.whyNotProven !== undefined
  }

  async #fieldsOf(reader: Reader, mention: Mention): Promise<Fields> {
    await checkMentions(reader, [mention])
    const [row] = await reader.resources([mention.id])
    if (!row) throw new Refusal('CONFLICT')
    return openFields(this.#options.sealer, resourceOf(row.kind).secrets, row.fields, resourceAt(row.id))
  }

  async #chosen(reader: Reader, resource: Resource, fields: Fields): Promise<Fields> {
    if (!resource.choose) return fields
    return resource.choose(fields, this.#options.around, async (scope, key) => !(await reader.holder(scope, key)))
  }

  async #live(resource: Resource, fields: Fields): Promise<Complete['live']> {
    return resource.live ? resource.live(fields, this.#options.presence) : {}
  }
}

/** The kind and id under which a change is announced: data planes load an edge with its routes, and a policy with its rules. */
export function rootOf(
  resource: Resource,
  { id, parentId }: Pick<StoredResource, 'id' | 'parentId'>,
): [kind: string, id: string] {
  return resource.parent && parentId ? [resource.parent.kind, parentId] : [resource.kind, id]
}

/** Removes a field from the body that is not the resource's own. */
function take(own: Record<string, unknown>, field: string | null): unknown {
  if (field === null) return undefined
  const value = own[field]
  delete own[field]
  return value
}

/** A parent that does not exist is 404 when the path names it and 400 when the body does (D28). */
async function requireParent(reader: Reader, { parent }: Resource, parentId: string): Promise<void> {
  if (!parent) return
  if (parent.in === 'body') {
    await checkMentions(reader, [{ field: parent.field, id: parentId, kinds: [parent.kind] }])
    return
  }
  const kinds = await reader.kinds([parentId])
  if (kinds.get(parentId) !== parent.kind) {
    throw new Refusal('NOT_FOUND', `there is no ${resourceOf(parent.kind).noun} with this id`)
  }
}

function tokenClaim(scope: string, token: string): Claim {
  return { scope, key: tokenHash(token), taken: { code: 'CONFLICT', msg: 'that token is taken' } }
}

/** The names among claims, each once. */
function namesIn(claims: readonly Claim[]): string[] {
  const named = claims.filter(({ scope }) => scope === EDGE_NAMES || scope === RESERVED_NAMES)
  return [...new Set(named.map(({ key }) => key))]
}

/** D105: a name by which the server itself is reached can only be kept, by a resource that had it before. */
function refuseKept(claims: readonly Claim[], before: readonly Claim[], { keptNames }: Surroundings): void {
  const kept = keptNames?.()
  if (!kept) return
  const held = new Set(namesIn(before))
  const names = new Set(namesIn(claims).filter((name) => !held.has(name) && kept.has(name)))
  const refused = claims.find(({ key }) => names.has(key))
  if (!refused) return
  const { code, field = '' } = refused.taken
  const msg = `\`${field}\`: callers or agents reach this server by \`${refused.key}\`, so nothing else can have that name; choose another, or give the server another one (\`--api-url\`, \`--agent-names\`)`
  throw new Refusal(code, msg, { field })
}

/** Whether two writes name the same resources. */
function sameIds(a: readonly Mention[], b: readonly Mention[]): boolean {
  const before = new Set(b.map(({ id }) => id))
  return a.length === b.length && a.every(({ id }) => before.has(id))
}

function only(records: readonly Complete[]): Complete {
  const [record] = records
  if (!record) throw new Error('a resource that was just there is gone')
  return record
}
