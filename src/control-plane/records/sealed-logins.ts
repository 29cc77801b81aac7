/** Logins on their way into the store and out of it: digests, bounds, and what is sealed. */
import { createHash } from 'node:crypto'
import { type Sealer, SealFault } from '../../lib/secrets/seal.ts'
import { cutText } from '../../lib/text/cut-text.ts'
import type { Login, LoginOrigin, LoginOwner, LoginScope, LoginUser, UsedAnswer } from '../../model/logins.ts'
import { browserOf } from '../../modules/login/browser-digest.ts'
import { everyPage } from '../store/every-page.ts'
import type { StoredAnswer, StoredLoginSession, StoredLoginUser } from '../store/login-reader.ts'
import type { Writer } from '../store/writer.ts'
import type { Reseal } from './reseal-database.ts'

/** Most that a module may keep of a login, as JSON in bytes: enough for two or three tokens of a provider with long ones. */
export const MAX_KEPT_BYTES = 16 * 1024

/** Longest user id of a provider, in bytes; OpenID Connect allows 255 characters. */
const MAX_USER_ID_BYTES = 1024

/** Texts that are only displayed are cut to this, in bytes. */
const MAX_SHOWN_BYTES = 512

export function userRow(id: string, login: Login, origin: LoginOrigin): StoredLoginUser {
  const { provider, providerUrl = '' } = origin
  const { user, identity, createdAt } = login
  if (Buffer.byteLength(user.id) > MAX_USER_ID_BYTES) {
    throw new Error(`the provider ${cutText(provider, 64)} gave a user id of over ${MAX_USER_ID_BYTES} bytes`)
  }
  return {
    id,
    key: userKey({ provider, providerUrl, identity, userId: user.id }),
    provider: shortText(provider),
    provider_url: shortText(providerUrl),
    provider_user_id: storableText(user.id),
    username: shortText(user.username),
    email: shortText(user.email),
    name: shortText(user.name),
    created_at: createdAt,
    last_login_at: createdAt,
    last_seen_at: login.lastSeenAt,
  }
}

/** The key of a user. Users of two providers may have the same id. */
export function userKey({ provider, providerUrl = '', identity, userId }: LoginOwner): string {
  const where = providerUrl === '' ? `identity ${identity}` : `url ${providerUrl}`
  return createHash('sha256')
    .update(JSON.stringify([provider, where, userId]))
    .digest('base64url')
}

export function answerRow({ key, untilMs }: UsedAnswer): StoredAnswer {
  return { key, expires_at: untilMs }
}

export function sessionRow(
  { id, userId }: { readonly id: string; readonly userId: string },
  { place, login, origin }: { readonly place: LoginScope; readonly login: Login; readonly origin: LoginOrigin },
  sealer: Sealer,
): StoredLoginSession {
  return {
    id,
    user_id: userId,
    browser: browserOf(place),
    host: shortText(place.host),
    edge_id: place.edgeId,
    route_id: place.routeId,
    identity: login.identity,
    ...changingColumns(id, login, sealer),
    ip: shortText(origin.ip),
    user_agent: shortText(origin.userAgent),
    created_at: login.createdAt,
    last_seen_at: login.lastSeenAt,
    expires_at: origin.expiresAt ?? null,
  }
}

/** The columns that change when a login is renewed with its provider. */
export function changingColumns(id: string, { user, kept, checkedAt }: Login, sealer: Sealer) {
  const text = JSON.stringify(kept)
  if (Buffer.byteLength(text) > MAX_KEPT_BYTES) {
    throw new Error(`the kept values of a login take over ${MAX_KEPT_BYTES} bytes`)
  }
  const login_user = JSON.stringify(boundedUser(user))
  return { login_user, kept: sealer.seal(text, keptAt(id)), checked_at: checkedAt }
}

/** The login of a row; undefined when the sealed part does not belong to this row or key. */
export function loginOf(row: StoredLoginSession, sealer: Sealer): Login | undefined {
  try {
    return {
      identity: row.identity,
      user: JSON.parse(row.login_user) as LoginUser, // written above
      kept: JSON.parse(sealer.open(row.kept, keptAt(row.id))) as Login['kept'], // sealed above
      createdAt: row.created_at,
      checkedAt: row.checked_at,
      lastSeenAt: row.last_seen_at,
    }
  } catch (cause) {
    if (cause instanceof SealFault) return undefined
    throw cause
  }
}

/** How many rows are held in memory at a time. */
const AT_A_TIME = 500

/** Seals every login again; returns the number of rows. A login that cannot be opened is removed. */
export async function resealLogins(writer: Writer, reseal: Reseal): Promise<number> {
  let count = 0
  for await (const some of everyPage(AT_A_TIME, (page) => writer.logins.sessions(page))) {
    for (const { id, kept } of some) {
      const sealed = attempt(() => reseal(kept, keptAt(id)))
      if (sealed === undefined) await writer.logins.removeSession(id)
      else await writer.logins.replaceKept(id, sealed)
    }
    count += some.length
  }
  return count
}

function attempt(reseal: () => string): string | undefined {
  try {
    return reseal()
  } catch {
    return undefined
  }
}

/** The id identifies the user and is never cut. */
function boundedUser({ id, name, email, username }: LoginUser): LoginUser {
  return { id, name: shortText(name), email: shortText(email), username: shortText(username) }
}

function keptAt(id: string): string {
  return `login_sessions/${id}/kept`
}

function shortText(text: string): string {
  return storableText(cutText(text, MAX_SHOWN_BYTES))
}

/** PostgreSQL stores neither NUL nor half a character. */
function storableText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}
