/** Creates the resources that a test needs, over the API: one of each kind on demand, with what it refers to. */
import type { ApiClient, Json } from '../support/api-client.ts'
import { EXAMPLE_ROOT } from './certificates.ts'
import { newPublicKey, openSshLine } from './ssh-keys.ts'
import { unique } from './target.ts'
import { tlsPair } from './tls-pair.ts'

export interface Kind {
  /** Where it has `{edge_id}`, this is an HTTPS edge. */
  readonly path: string
  /** Null when there is no list. */
  readonly listKey: string | null
  /** The fields a create body must have, and no others. */
  readonly least: (world: World) => Promise<Record<string, unknown>>
  /** Deletes an existing one that conflicts with these fields, for kinds of which there can be only one. */
  readonly makeRoom?: (world: World, fields: Readonly<Record<string, unknown>>) => Promise<void>
  /** Whether it has `description` and `metadata`. */
  readonly isDescribed: boolean
}

export type KindName =
  | 'api_key'
  | 'ssh_credential'
  | 'credential'
  | 'bot_user'
  | 'service_user'
  | 'user'
  | 'tcp_edge'
  | 'tls_edge'
  | 'https_edge'
  | 'https_edge_route'
  | 'tunnel_group_backend'
  | 'http_response_backend'
  | 'ip_policy'
  | 'ip_policy_rule'
  | 'certificate_authority'
  | 'weighted_backend'
  | 'failover_backend'
  | 'static_backend'
  | 'tls_certificate'
  | 'reserved_addr'
  | 'reserved_domain'
  | 'agent_ingress'
  | 'ip_restriction'
  | 'ssh_certificate_authority'
  | 'ssh_user_certificate'
  | 'ssh_host_certificate'

const none = async () => ({})

/** The type of the one IP restriction that the table of operations makes; there is one for each type. */
export const TABLE_RESTRICTION = 'endpoints'
const restrictionTypes = ['api', 'dashboard', 'agent'] as const
let restrictions = 0

export const kinds: Readonly<Record<KindName, Kind>> = {
  api_key: { path: '/api_keys', listKey: 'keys', least: none, isDescribed: true },
  ssh_credential: {
    path: '/ssh_credentials',
    listKey: 'ssh_credentials',
    least: async () => ({ public_key: openSshLine(newPublicKey('ed25519')) }),
    isDescribed: true,
  },
  credential: { path: '/credentials', listKey: 'credentials', least: none, isDescribed: true },
  bot_user: {
    path: '/bot_users',
    listKey: 'bot_users',
    least: async () => ({ name: unique('bot') }),
    isDescribed: false,
  },
  service_user: {
    path: '/service_users',
    listKey: 'service_users',
    least: async () => ({ name: unique('service') }),
    isDescribed: false,
  },
  user: { path: '/users', listKey: 'users', least: async () => ({ name: unique('user') }), isDescribed: false },
  tcp_edge: { path: '/edges/tcp', listKey: 'tcp_edges', least: none, isDescribed: true },
  tls_edge: { path: '/edges/tls', listKey: 'tls_edges', least: none, isDescribed: true },
  https_edge: { path: '/edges/https', listKey: 'https_edges', least: none, isDescribed: true },
  https_edge_route: {
    path: '/edges/https/{edge_id}/routes',
    listKey: null,
    least: async () => ({ match_type: 'path_prefix', match: `/${unique('path')}` }),
    isDescribed: true,
  },
  tunnel_group_backend: {
    path: '/backends/tunnel_group',
    listKey: 'backends',
    least: async () => ({ labels: { app: unique('app') } }),
    isDescribed: true,
  },
  http_response_backend: { path: '/backends/http_response', listKey: 'backends', least: none, isDescribed: true },
  ip_policy: { path: '/ip_policies', listKey: 'ip_policies', least: none, isDescribed: true },
  ip_policy_rule: {
    path: '/ip_policy_rules',
    listKey: 'ip_policy_rules',
    least: async (world) => ({
      cidr: '192.0.2.0/24',
      action: 'allow',
      ip_policy_id: (await world.make('ip_policy')).id,
    }),
    isDescribed: true,
  },
  certificate_authority: {
    path: '/certificate_authorities',
    listKey: 'certificate_authorities',
    least: async () => ({ ca_pem: EXAMPLE_ROOT }),
    isDescribed: true,
  },
  weighted_backend: {
    path: '/backends/weighted',
    listKey: 'backends',
    least: async (world) => ({ backends: { [(await world.shared('tunnel_group_backend')).id]: 1 } }),
    isDescribed: true,
  },
  failover_backend: {
    path: '/backends/failover',
    listKey: 'backends',
    least: async (world) => ({ backends: [(await world.shared('tunnel_group_backend')).id] }),
    isDescribed: true,
  },
  static_backend: {
    path: '/backends/static',
    listKey: 'backends',
    least: async () => ({ address: '192.0.2.1:80' }),
    isDescribed: true,
  },
  tls_certificate: {
    path: '/tls_certificates',
    listKey: 'tls_certificates',
    least: async () => tlsPair,
    isDescribed: true,
  },
  reserved_addr: { path: '/reserved_addrs', listKey: 'reserved_addrs', least: none, isDescribed: true },
  reserved_domain: {
    path: '/reserved_domains',
    listKey: 'reserved_domains',
    least: async () => ({ domain: `${unique('domain')}.example.com` }),
    isDescribed: true,
  },
  agent_ingress: {
    path: '/agent_ingresses',
    listKey: 'ingresses',
    least: async () => ({ domain: `${unique('connect')}.example.com` }),
    isDescribed: true,
  },
  ip_restriction: {
    path: '/ip_restrictions',
    listKey: 'ip_restrictions',
    least: async (world) => ({
      type: restrictionTypes[restrictions++ % restrictionTypes.length],
      ip_policy_ids: [(await world.shared('ip_policy')).id],
    }),
    makeRoom: async ({ api }, { type }) => {
      for (const each of (await api.get('/ip_restrictions')).ip_restrictions) {
        if (each.type === type || each.type === TABLE_RESTRICTION) await api.delete(`/ip_restrictions/${each.id}`)
      }
    },
    isDescribed: true,
  },
  ssh_certificate_authority: {
    path: '/ssh_certificate_authorities',
    listKey: 'ssh_certificate_authorities',
    least: none,
    isDescribed: true,
  },
  ssh_user_certificate: {
    path: '/ssh_user_certificates',
    listKey: 'ssh_user_certificates',
    least: toSign,
    isDescribed: true,
  },
  ssh_host_certificate: {
    path: '/ssh_host_certificates',
    listKey: 'ssh_host_certificates',
    least: toSign,
    isDescribed: true,
  },
}

/** What every SSH certificate needs. */
async function toSign(world: World): Promise<Record<string, unknown>> {
  const { id } = await world.shared('ssh_certificate_authority')
  return { ssh_certificate_authority_id: id, public_key: openSshLine(newPublicKey('ed25519')) }
}

export const kindNames = Object.keys(kinds) as KindName[]

/** A created resource, and its path under the base url. */
export interface Made {
  readonly id: string
  readonly path: string
  readonly ref: { readonly id: string; readonly uri: string }
  /** The answer to its creation. */
  readonly body: Json
}

export class World {
  readonly api: ApiClient
  readonly #shared = new Map<KindName, Promise<Made>>()

  constructor(api: ApiClient) {
    this.api = api
  }

  /** A new resource; `fields` are added to the required ones. */
  async make(kind: KindName, fields: Record<string, unknown> = {}, parent?: Made): Promise<Made> {
    const path = await this.collection(kind, parent)
    const sent = { ...(await this.least(kind)), ...fields }
    await kinds[kind].makeRoom?.(this, sent)
    const body = await this.api.create(path, sent)
    return { id: body.id, path: `${path}/${body.id}`, ref: { id: body.id, uri: body.uri }, body }
  }

  /** A resource that tests may refer to but must not change. */
  shared(kind: KindName): Promise<Made> {
    const found = this.#shared.get(kind) ?? this.make(kind)
    this.#shared.set(kind, found)
    return found
  }

  least(kind: KindName): Promise<Record<string, unknown>> {
    return kinds[kind].least(this)
  }

  /** The path to create at; creates the edge if the path needs one. */
  async collection(kind: KindName, parent?: Made): Promise<string> {
    const { path } = kinds[kind]
    if (!path.includes('{edge_id}')) return path
    return path.replace('{edge_id}', (parent ?? (await this.make('https_edge'))).id)
  }
}

/** A well-formed id that does not exist. */
export function unknownId(prefix: string): string {
  return `${prefix}${'0'.repeat(27)}`
}
