/** Reads, shows and ends the users and sessions of logins for the API. */
import { timestamp } from '../../lib/clock.ts'
import { MAX_IDLE_MS } from '../../link/planes/login-store.ts'
import { applicationSessions } from '../resources/application-sessions.ts'
import { applicationUsers } from '../resources/application-users.ts'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import type { Resource } from '../resources/resource.ts'
import type { Links } from '../resources/resource-links.ts'
import type { LoginPageOf, LoginReader, StoredLoginSession, StoredLoginUser } from '../store/login-reader.ts'
import type { Store } from '../store/store.ts'
import type { StoredLogins } from './stored-logins.ts'
import { readUserAgent } from './user-agent-text.ts'

/** How the API reads and ends logins. */
export interface Logins {
  read<T>(query: (logins: LoginReader) => Promise<T>): Promise<T>
  /** Ends a session, or a user with all its sessions; resolves with whether there was one. */
  revoke(resource: Resource, id: string): Promise<boolean>
}

type Shown = Record<string, unknown>

export function loginsOf(store: Store, stored: StoredLogins): Logins {
  return {
    read: (query) => store.read((reader) => query(reader.logins)),
    revoke: (resource, id) => (resource === applicationUsers ? stored.revokeUser(id) : stored.revoke(id)),
  }
}

/** A page of users or sessions of logins, as shown by the API. */
export async function loginPage(logins: Logins, resource: Resource, page: LoginPageOf, links: Links): Promise<Shown[]> {
  if (resource === applicationUsers) {
    return (await logins.read((reader) => reader.users(page))).map((user) => showUser(user, links))
  }
  return (await logins.read((reader) => reader.sessions(page))).map((session) => showSession(session, links))
}

/** One user or session of logins, as shown by the API. */
export async function loginOne(
  logins: Logins,
  resource: Resource,
  id: string,
  links: Links,
): Promise<Shown | undefined> {
  if (resource === applicationUsers) {
    const user = await logins.read((reader) => reader.user(id))
    return user && showUser(user, links)
  }
  const session = await logins.read((reader) => reader.session(id))
  return session && showSession(session, links)
}

function showUser(user: StoredLoginUser, links: Links): Shown {
  return {
    id: user.id,
    uri: links.one(applicationUsers, user.id, null),
    identity_provider: { name: user.provider, url: user.provider_url },
    provider_user_id: user.provider_user_id,
    username: user.username,
    email: user.email,
    name: user.name,
    created_at: timestamp(user.created_at),
    last_active: timestamp(user.last_seen_at),
    last_login: timestamp(user.last_login_at),
  }
}

function showSession(session: StoredLoginSession, links: Links): Shown {
  const { edge_id: edgeId } = session
  // For a login in a policy, its name follows the id of the route.
  const [routeId = ''] = session.route_id.split('~', 1)
  const isOfAgent = edgeId.startsWith('ep_')
  return {
    id: session.id,
    uri: links.one(applicationSessions, session.id, null),
    public_url: `https://${session.host}`,
    browser_session: {
      user_agent: readUserAgent(session.user_agent),
      ip_address: session.ip,
      location: null,
    },
    application_user: links.to(session.user_id),
    created_at: timestamp(session.created_at),
    last_active: timestamp(session.last_seen_at),
    expires_at: timestamp(Math.min(session.expires_at ?? Infinity, session.last_seen_at + MAX_IDLE_MS)),
    endpoint: isOfAgent ? links.to(edgeId) : null,
    edge: isOfAgent ? null : links.to(edgeId),
    route: isOfAgent ? null : { id: routeId, uri: links.one(httpsEdgeRoutes, routeId, edgeId) },
  }
}
