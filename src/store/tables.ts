/**
 * The tables, as Kysely sees them.
 *
 * All resources share one table on purpose: a backend id may name one of several kinds, and only rows of one table can
 * be the target of a real foreign key. So delete protection, dangling references and cascades are kept by the database
 * itself, and a new resource needs no table of its own. What only that resource understands is JSON in `fields`.
 */
import type { Generated } from 'kysely'

export interface Tables {
  resources: {
    id: string
    kind: string
    /** What it goes with: a route's edge, a rule's IP policy. */
    parent_id: string | null
    owner_id: string | null
    created_at: string
    fields: string
  }
  modules: { host_id: string; module: string; config: string }
  /** Who names whom, and in which field or module. */
  refs: { from_id: string; slot: string; to_id: string }
  /** Names that only one resource may hold: hostports, token hashes, key fingerprints, matches of routes. */
  claims: { scope: string; key: string; holder_id: string }
  /** That something changed, never what; nodes read it from their last revision on. */
  changes: { revision: Generated<number>; kind: string; id: string }
  /** Facts about this database, such as which key its secrets are sealed with. */
  meta: { key: string; value: string }
  /** Who has logged in at an edge. Times are milliseconds since 1970, here and in `login_sessions`. */
  login_users: {
    id: string
    /** A digest of the provider and of what the user is known by there. */
    key: string
    provider: string
    provider_url: string
    provider_user_id: string
    username: string
    email: string
    name: string
    created_at: number
    last_login_at: number
    last_seen_at: number
  }
  /** Logins of browsers, each at one route. */
  login_sessions: {
    id: string
    user_id: string
    /** A digest of the cookie's secret and of the host. */
    browser: string
    host: string
    edge_id: string
    route_id: string
    identity: string
    /** The user as this very login knows it, as JSON. */
    login_user: string
    /** What the module keeps, sealed. */
    kept: string
    ip: string
    user_agent: string
    created_at: number
    checked_at: number
    last_seen_at: number
    expires_at: number | null
  }
}
