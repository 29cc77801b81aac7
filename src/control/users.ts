/** Users: the people of the account. The API shows none; the first start and `postern admin` make them. */
import { type Clock, timestamp } from '../lib/clock.ts'
import { type IdSource, randomText } from '../lib/ids.ts'
import { Refusal } from '../model/errors.ts'
import { API_KEY_TOKENS, apiKeys } from '../resources/api-keys.ts'
import { AUTHTOKENS, credentials } from '../resources/credentials.ts'
import type { Resource } from '../resources/resource.ts'
import type { Reader } from '../store/reader.ts'
import { type Store, StoreConflict } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { tokenHash } from './principal.ts'

const USER = 'user'
const USER_PREFIX = 'usr_'
/** Held by the first user, so that of two servers started at once one makes it. */
const FIRST_USER = { scope: 'first_user', key: 'first' }
const MAX_USERS_LISTED = 1000

export type Role = 'admin' | 'member'

export type User = Readonly<{ id: string; name: string; role: Role; active: boolean; created_at: string }>

/** What the first start made: shown once. */
export interface FirstStart {
  readonly userId: string
  readonly apiKey: string
  readonly authtoken: string
}

export interface Making {
  readonly store: Store
  readonly ids: IdSource
  readonly now: Clock
}

/** Makes the first admin with a key and an authtoken, preset or random; null when there is a user already. */
export async function makeFirstUser(
  making: Making,
  preset: { apiKey: string | null; authtoken: string | null },
): Promise<FirstStart | null> {
  const { store } = making
  const isMade = (reader: Reader) => reader.holder(FIRST_USER.scope, FIRST_USER.key)
  if (await store.read(isMade)) return null
  const made = store.write(async (writer) => {
    const user = await insertUser(writer, making, { name: 'admin', role: 'admin' })
    await writer.setClaims(user.id, FIRST_USER.scope, [FIRST_USER.key], true)
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

export async function createUser(making: Making, { name, role }: { name: string; role: Role }): Promise<User> {
  return making.store.write((writer) => insertUser(writer, making, { name, role }))
}

export async function listUsers({ store }: Making): Promise<User[]> {
  const rows = await store.read((reader) => reader.page({ kind: USER, limit: MAX_USERS_LISTED }))
  return rows.map(({ id, fields, createdAt }) => ({
    id,
    name: String(fields.name),
    role: fields.role === 'admin' ? 'admin' : 'member',
    active: fields.active !== false,
    created_at: createdAt,
  }))
}

/** A key for whoever lost theirs; works without one. */
export async function createKey(
  making: Making,
  { ownerId, description }: { ownerId: string; description: string },
): Promise<{ id: string; token: string }> {
  return making.store.write(async (writer) => {
    const kind = (await writer.kinds([ownerId])).get(ownerId)
    if (kind !== USER && kind !== 'bot_user') throw new Refusal('UNKNOWN_OWNER', 'there is no user or bot with this id')
    return insertToken(writer, making, apiKeys, API_KEY_TOKENS, ownerId, { description }, null)
  })
}

async function insertUser(writer: Writer, { ids, now }: Making, fields: { name: string; role: Role }): Promise<User> {
  const id = ids.next(USER_PREFIX)
  const createdAt = timestamp(now())
  await writer.insert({ id, kind: USER, parentId: null, ownerId: null, createdAt, fields })
  writer.changed(USER, id)
  return { id, ...fields, active: true, created_at: createdAt }
}

/** Stores a key or credential with its token, as creation through the API does. */
async function insertToken(
  writer: Writer,
  { ids, now }: Making,
  resource: Resource,
  scope: string,
  ownerId: string,
  own: Record<string, unknown>,
  preset: string | null,
): Promise<{ id: string; token: string }> {
  const id = ids.next(resource.prefix)
  const token = preset ?? `${id.slice(resource.prefix.length)}_${randomText()}`
  const fields = { description: '', metadata: '', ...own }
  await writer.insert({ id, kind: resource.kind, parentId: null, ownerId, createdAt: timestamp(now()), fields })
  await writer.setClaims(id, scope, [tokenHash(token)], true)
  writer.changed(resource.kind, id)
  return { id, token }
}
