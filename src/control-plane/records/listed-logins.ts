/** Reads and shows the users and sessions of logins for the API. */
import { timestamp } from '../../lib/clock.ts'
import { shape } from '../../lib/shape/schema.ts'
import { MAX_IDLE_MS } from '../../link/planes/login-store.ts'
import { applicationSessions } from '../resources/application-sessions.ts'
import { applicationUsers } from '../resources/application-users.ts'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import type { Resource } from '../resources/resource.ts'
import type { LoginReader, StoredLoginSession, StoredLoginUser } from '../store/login-reader.ts'
import { type Presenting, readKind, type Shown } from './online-lists.ts'
import { readUserAgent } from './user-agent-text.ts'

const users = readKind(showUser, {
  page: (all: LoginReader, page) => all.users(page),
  one: (all, id) => all.user(id),
})

const sessions = readKind(showSession, {
  page: (all: LoginReader, page) => all.sessions(page),
  one: (all, id) => all.session(id),
})

/** How users or sessions of logins are read and shown. */
export function loginKind(resource: Resource): typeof users {
  return resource === applicationUsers ? users : sessions
}

function showUser(user: StoredLoginUser, { links }: Presenting): Shown {
  const shown = {
    ...user,
    uri: links.one(applicationUsers, user.id, null),
    identity_provider: { name: user.provider, url: user.provider_url },
    created_at: timestamp(user.created_at),
    last_active: timestamp(user.last_seen_at),
    last_login: timestamp(user.last_login_at),
  }
  return shape(applicationUsers.view, shown) as Shown
}

function showSession(session: StoredLoginSession, { links }: Presenting): Shown {
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
