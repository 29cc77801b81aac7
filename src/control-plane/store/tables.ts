/** The tables, as Kysely sees them. */
import type { Generated } from 'kysely'

export interface Tables {
  /**
   * All resources share one table on purpose: a backend id may refer to one of several kinds, and a foreign key can point to
   * one table only. So the database itself protects referenced resources, prevents dangling references, and cascades
   * deletes; and a new kind needs no table of its own. Fields that only one kind has are JSON in `fields`.
   */
  resources: {
    id: string
    kind: string
    /** The resource it belongs to, and is deleted with: a route's edge, a rule's IP policy. */
    parent_id: string | null
    owner_id: string | null
    created_at: string
    fields: string
  }
  modules: { host_id: string; module: string; config: string }
  /** References between resources; `slot` is the field or module that refers. */
  refs: { from_id: string; slot: string; to_id: string }
  /** Names that only one resource may hold: hostports, token hashes, key fingerprints, matches of routes. */
  claims: { scope: string; key: string; holder_id: string }
  /** The change feed: which resource changed, but not how. Nodes read it from their last revision on. */
  changes: { revision: Generated<number>; kind: string; id: string }
  /** Facts about this database, such as which key its secrets are sealed with. */
  meta: { key: string; value: string }
  /** Users who have logged in at an edge. Times are in milliseconds since 1970, here and in the tables below. */
  login_users: {
    id: string
    /** A digest of the provider and the user's id there. */
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
  /** Logins of browsers, each on one route. */
  login_sessions: {
    id: string
    user_id: string
    /** A digest of the cookie's secret and the host. */
    browser: string
    host: string
    edge_id: string
    route_id: string
    identity: string
    /** The user as of this login, as JSON. */
    login_user: string
    /** What the module stores with a login, sealed. */
    kept: string
    ip: string
    user_agent: string
    created_at: number
    checked_at: number
    last_seen_at: number
    expires_at: number | null
  }
  /** Proofs that may not be used again: answers of identity providers, sessions of the page; `key` has a digest. */
  used_answers: {
    key: string
    /** When it is no longer valid anywhere, and may be forgotten. */
    expires_at: number
  }
  /** The nodes of a cluster. What a node has in the tables below counts only while its lease runs. */
  nodes: {
    id: string
    name: string
    /** Where other nodes reach it. */
    address: string
    /** Where agents reach it: a JSON list. */
    agent_addresses: string
    region: string
    version: string
    /** When it started, as in RFC 3339. */
    since: string
    is_leaving: number
    /** Number of its sessions. */
    sessions: number
    /** When its lease ends, by the database's clock, since the clocks of nodes may differ. */
    expires_at: number
  }
  /** Sessions of agents that are online. `fields`, here and below, is JSON that only its writer understands. */
  online_sessions: {
    id: string
    node_id: string
    plane_id: string
    credential_id: string
    certificate_id: string | null
    fields: string
  }
  online_tunnels: {
    id: string
    node_id: string
    plane_id: string
    session_id: string
    endpoint_id: string | null
    fields: string
  }
  /** The labels of tunnels; `pair` is the text of one label. */
  online_labels: { pair: string; tunnel_id: string; node_id: string }
  /** Public addresses that tunnels hold, and what is served there. */
  places: {
    place: string
    owner_id: string
    is_pooled: number
    /** A digest of what all tunnels of a pool must agree on. */
    digest: string
    is_unnamed: number
    port: number | null
    config: string
  }
  /**
   * The holders of places. `slot` is empty when one tunnel has the place alone, and the tunnel's id in a pool: each slot of a
   * place has one holder.
   */
  place_holders: {
    place: string
    slot: string
    tunnel_id: string
    session_id: string
    node_id: string
    plane_id: string
    /** New each time that a tunnel gets the place. */
    version: string
  }
  /** Accounts at authorities that issue certificates, one for each directory. */
  acme_accounts: {
    directory: string
    /** The private key, sealed. */
    key: string
    /** The account's URL at the authority; empty until it has confirmed the account. */
    url: string
  }
  /** Names whose certificates the server orders by itself. */
  managed_names: {
    name: string
    /** What is to be done: 0 continue an order, 1 get a first certificate, 2 renew one. */
    stage: number
    /** When it is due next, by the database's clock. */
    due_at: number
    /** The node that works on it, and until when. */
    holder: string
    held_until: number
    /** The private key for the order under way, sealed; empty without one. */
    order_key: string
    /** JSON that only its writer understands. */
    state: string
  }
  /** Orders that were begun, for the limit on orders in an hour. */
  acme_orders: { id: string; begun_at: number }
  /** The challenges by which authorities check that a name is served here. */
  acme_challenges: { name: string; kind: string; token: string; answer: string }
}
