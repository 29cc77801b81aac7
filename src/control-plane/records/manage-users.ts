/** Manages users without the API: the first start creates one, and `postern admin` helps when no key is at hand. */
import { timestamp } from '../../lib/clock.ts'
import { randomText } from '../../lib/ids.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import { Refusal } from '../../model/errors.ts'
import { API_KEY_TOKENS, apiKeys } from '../resources/api-keys.ts'
import { AUTHTOKENS, credentials } from '../resources/credentials.ts'
import type { Fields, Resource } from '../resources/resource.ts'
import { users } from '../resources/users.ts'
import type { ControlTools } from '../store/control-tools.ts'
import { everyPage } from '../store/every-page.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import { StoreConflict } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { tokenHash } from './find-caller.ts'

/** Claimed by the first user, so that of two servers that start at once only one creates it. */
const FIRST_USER = { scope: 'first_user', key: 'first' }
/** The stored fact that there was a first user. It outlives that user; otherwise the next start would create another. */
const FIRST_START = 'first_start'
/** A fact that every write that may remove an admin changes, so that two such writes run one after the other. */
const ADMINS = 'admins'
const MAX_USERS_LISTED = 1000
/** Users read at a time in search of an admin. */
const AT_A_TIME = 500

export type Role = 'admin' | 'member'

type User = Readonly<{ id: string; name: string; role: Role; active: boolean; created_at: string }>

/** What the first start created; shown once. */
export interface FirstStart {
  readonly userId: string
  readonly apiKey: string
  readonly authtoken: string
}

type UserTools = Pick<ControlTools, 'store' | 'ids' | 'now'>

/** Creates the first admin with a key and an authtoken, preset or random; null when there is a user already. */
export async function makeFirstUser(
  making: UserTools,
  preset: { readonly apiKey: Secret | null; readonly authtoken: Secret | null },
): Promise<FirstStart | null> {
  const { store } = making
  const isMade = async (reader: Reader) =>
    (await reader.meta(FIRST_START)) !== undefined ||
    (await reader.holder(FIRST_USER.scope, FIRST_USER.key)) !== undefined
  if (await store.read(isMade)) return null
  const made = store.write(async (writer) => {
    const user = await insertUser(writer, making, { name: 'admin', role: 'admin' })
    await writer.setClaims(user.id, FIRST_USER.scope, [FIRST_USER.key], true)
    await writer.keepMeta(FIRST_START, user.id)
    const description = 'made at the first start'
    const key = await insertToken(writer, making, apiKeys, API_KEY_TOKENS, user.id, { description }, preset.apiKey)
    const credential = { description, acl: [] }
    const authtoken = await insertToken(writer, making, credentials, AUTHTOKENS, user.id, credential, preset.authtoken)
    return { userId: user.id, apiKey: key.token, authtoken: authtoken.token }
  })
  return made.catch(async (error: unknown) => {
    if (error instanceof StoreConflict && (await store.read(isMade))) return null
    throw error
  })
}

export async function createUser(making: UserTools, { name, role }: { name: string; role: Role }): Promise<User> {
  return making.store.write((writer) => insertUser(writer, making, { name, role }))
}

export async function listUsers({ store }: UserTools): Promise<User[]> {
  const rows = await store.read((reader) => reader.page({ kind: users.kind, limit: MAX_USERS_LISTED }))
  return rows.map(userOf)
}

/** Deactivates or reactivates a user with its keys and credentials; returns the changed user. */
export async function setUserActive({ store }: UserTools, id: string, active: boolean): Promise<User> {
  return store.write(async (writer) => {
    const before = await existing(writer, id)
    const fields = { ...before.fields, active }
    await keepAnAdmin(writer, before, fields)
    await writer.replaceFields(id, fields)
    writer.changed(users.kind, id)
    return userOf({ ...before, fields })
  })
}

/** Deletes a user with its keys and credentials. */
export async function deleteUser({ store }: UserTools, id: string): Promise<void> {
  await store.write(async (writer) => {
    const before = await existing(writer, id)
    await keepAnAdmin(writer, before, null)
    for (const owned of await writer.ownedBy(id)) writer.changed(owned.kind, owned.id)
    await writer.remove(id)
    writer.changed(users.kind, id)
  })
}

/**
 * Refuses a write that would leave the account without an active admin, since nobody could create another. `after` is
 * null when the user is deleted.
 */
export async function keepAnAdmin(writer: Writer, before: StoredResource, after: Fields | null): Promise<void> {
  if (after === null) await writer.keepMeta(FIRST_START, before.id)
  if (!isActiveAdmin(before.fields) || (after !== null && isActiveAdmin(after))) return
  // Of two admins who remove each other at once, the second waits here, and is then refused.
  await writer.setMeta(ADMINS, before.id)
  if (await hasActiveAdmin(writer, before.id)) return
  throw new Refusal('LAST_ADMIN')
}

/** Whether there is an active admin other than `exceptId`. */
async function hasActiveAdmin(reader: Reader, exceptId: string): Promise<boolean> {
  for await (const some of everyPage(AT_A_TIME, (page) => reader.page({ kind: users.kind, ...page }))) {
    if (some.some(({ id, fields }) => id !== exceptId && isActiveAdmin(fields))) return true
  }
  return false
}

function isActiveAdmin({ role, active }: Fields): boolean {
  return role === 'admin' && active !== false
}

async function existing(writer: Writer, id: string): Promise<StoredResource> {
  const found = await writer.lock(users.kind, id)
  if (!found) throw new Refusal('NOT_FOUND', 'there is no user with this id')
  return found
}

function userOf({ id, fields, createdAt }: Pick<StoredResource, 'id' | 'fields' | 'createdAt'>): User {
  return {
    id,
    name: String(fields.name),
    role: fields.role === 'admin' ? 'admin' : 'member',
    active: fields.active !== false,
    created_at: createdAt,
  }
}

/** Creates a key for a user who has lost theirs, without needing one. */
export async function createKey(
  making: UserTools,
  { ownerId, description }: { ownerId: string; description: string },
): Promise<{ id: string; token: string }> {
  return making.store.write(async (writer) => {
    const kind = (await writer.kinds([ownerId])).get(ownerId)
    if (kind !== users.kind && kind !== 'bot_user')
      throw new Refusal('UNKNOWN_OWNER', 'there is no user or bot with this id')
    return insertToken(writer, making, apiKeys, API_KEY_TOKENS, ownerId, { description }, null)
  })
}

async function insertUser(
  writer: Writer,
  { ids, now }: UserTools,
  fields: { name: string; role: Role },
): Promise<User> {
  const id = ids.next(users.prefix)
  const createdAt = timestamp(now())
  const stored = { ...fields, active: true }
  await writer.insert({ id, kind: users.kind, parentId: null, ownerId: null, createdAt, fields: stored })
  writer.changed(users.kind, id)
  return { id, ...stored, created_at: createdAt }
}

/** Stores a key or credential with its token, as creation through the API does. */
async function insertToken(
  writer: Writer,
  { ids, now }: UserTools,
  resource: Resource,
  scope: string,
  ownerId: string,
  own: Record<string, unknown>,
  preset: Secret | null,
): Promise<{ id: string; token: string }> {
  const id = ids.next(resource.prefix)
  const token = preset?.reveal() ?? `${id.slice(resource.prefix.length)}_${randomText()}`
  const fields = { description: '', metadata: '', ...own }
  await writer.insert({ id, kind: resource.kind, parentId: null, ownerId, createdAt: timestamp(now()), fields })
  await writer.setClaims(id, scope, [tokenHash(token)], true)
  writer.changed(resource.kind, id)
  return { id, token }
}
