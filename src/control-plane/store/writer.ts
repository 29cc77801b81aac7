/** All queries that write resources to the database, inside one transaction. */
import { CertificateWriter } from './certificate-writer.ts'
import { KEPT_CHANGES, OLDEST_CHANGE } from './feed.ts'
import { LoginWriter } from './login-writer.ts'
import { OnlineWriter } from './online-writer.ts'
import { Reader, type StoredResource } from './reader.ts'

/** Old changes are deleted once for this many new ones, so each sweep deletes about as many. */
const SWEEP_EVERY = 1000

export class Writer extends Reader {
  readonly #changes = new Map<string, { kind: string; id: string }>()
  /** Callbacks for the revision of a change, by its id. */
  readonly #asked = new Map<string, (revision: number) => void>()

  override get logins(): LoginWriter {
    return new LoginWriter(this.db, this.facts)
  }

  override get online(): OnlineWriter {
    return new OnlineWriter(this.db, this.facts)
  }

  override get certificates(): CertificateWriter {
    return new CertificateWriter(this.db, this.facts)
  }

  async insert(resource: Omit<StoredResource, 'modules'>): Promise<void> {
    await this.db
      .insertInto('resources')
      .values({
        id: resource.id,
        kind: resource.kind,
        parent_id: resource.parentId,
        owner_id: resource.ownerId,
        created_at: resource.createdAt,
        fields: JSON.stringify(resource.fields),
      })
      .execute()
  }

  /** Reads a resource, and locks it against other writers until this transaction ends. */
  async lock(kind: string, id: string): Promise<StoredResource | undefined> {
    if (this.facts.locksRows) {
      await this.db.selectFrom('resources').select('id').where('id', '=', id).forUpdate().execute()
    }
    return this.resource(kind, id)
  }

  /** Locks these resources against writers until this transaction ends; others may hold them at the same time. */
  async hold(ids: readonly string[]): Promise<void> {
    if (!this.facts.locksRows || ids.length === 0) return
    await this.db.selectFrom('resources').select('id').where('id', 'in', ids).orderBy('id').forShare().execute()
  }

  async replaceFields(id: string, fields: Readonly<Record<string, unknown>>): Promise<void> {
    await this.db
      .updateTable('resources')
      .set({ fields: JSON.stringify(fields) })
      .where('id', '=', id)
      .execute()
  }

  /** Deletes a resource and everything that belongs to it; the database refuses while others refer to it. */
  async remove(id: string): Promise<void> {
    await this.db.deleteFrom('resources').where('id', '=', id).execute()
  }

  async putModule(hostId: string, module: string, config: Readonly<Record<string, unknown>>): Promise<void> {
    const json = JSON.stringify(config)
    await this.db
      .insertInto('modules')
      .values({ host_id: hostId, module, config: json })
      .onConflict((oc) => oc.columns(['host_id', 'module']).doUpdateSet({ config: json }))
      .execute()
  }

  async removeModule(hostId: string, module: string): Promise<void> {
    await this.db.deleteFrom('modules').where('host_id', '=', hostId).where('module', '=', module).execute()
  }

  /** Replaces all references of `fromId` in `slot` by `toIds`. */
  async setReferences(fromId: string, slot: string, toIds: readonly string[], isNew: boolean): Promise<void> {
    if (!isNew) await this.db.deleteFrom('refs').where('from_id', '=', fromId).where('slot', '=', slot).execute()
    if (toIds.length === 0) return
    const rows = [...new Set(toIds)].map((to_id) => ({ from_id: fromId, slot, to_id }))
    await this.db.insertInto('refs').values(rows).execute()
  }

  /** Replaces all claims of `holderId` in `scope` by `keys`. */
  async setClaims(holderId: string, scope: string, keys: readonly string[], isNew: boolean): Promise<void> {
    if (!isNew) {
      await this.db.deleteFrom('claims').where('holder_id', '=', holderId).where('scope', '=', scope).execute()
    }
    if (keys.length === 0) return
    const rows = keys.map((key) => ({ scope, key, holder_id: holderId }))
    await this.db.insertInto('claims').values(rows).execute()
  }

  /** Sets a fact unless it is set, even by another node at this moment; returns the value it then has. */
  async keepMeta(key: string, value: string): Promise<string> {
    await this.db
      .insertInto('meta')
      .values({ key, value })
      .onConflict((oc) => oc.column('key').doNothing())
      .execute()
    return (await this.meta(key)) ?? value
  }

  /** Reads a fact, and locks it against changes until this transaction ends. */
  async holdMeta(key: string): Promise<string | undefined> {
    if (this.facts.locksRows) {
      await this.db.selectFrom('meta').select('key').where('key', '=', key).forShare().execute()
    }
    return this.meta(key)
  }

  async setMeta(key: string, value: string): Promise<void> {
    await this.db
      .insertInto('meta')
      .values({ key, value })
      .onConflict((oc) => oc.column('key').doUpdateSet({ value }))
      .execute()
  }

  /**
   * Notes that a resource changed; `finish` writes each one once. `onRevision` is called with its revision before anyone can
   * read it; the transaction may still fail.
   */
  changed(kind: string, id: string, onRevision?: (revision: number) => void): void {
    this.#changes.set(id, { kind, id })
    if (onRevision) this.#asked.set(id, onRevision)
  }

  /** Writes the noted changes to the change feed; returns the revision of the last one, 0 when there were none. */
  async finish(): Promise<number> {
    if (this.#changes.size === 0) return 0
    await this.facts.orderChanges(this.db)
    const written = await this.db
      .insertInto('changes')
      .values([...this.#changes.values()])
      .returning(['revision', 'id'])
      .execute()
    for (const { revision, id } of written) this.#asked.get(id)?.(revision)
    const due = written.find(({ revision }) => revision % SWEEP_EVERY === 0 && revision > KEPT_CHANGES)
    if (due) await this.#sweep(due.revision - KEPT_CHANGES)
    return Math.max(...written.map(({ revision }) => revision))
  }

  async #sweep(upTo: number): Promise<void> {
    await this.db.deleteFrom('changes').where('revision', '<=', upTo).execute()
    await this.setMeta(OLDEST_CHANGE, String(upTo + 1))
  }
}
