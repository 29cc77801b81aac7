/** Which kinds and modules stand for all others on PostgreSQL: one for each way into the store. */
import type { Target } from './target.ts'
import { type KindName, kindNames } from './world.ts'

/**
 * Every suite tests every kind on SQLite. All kinds share one table and one code (`Records`), which runs other statements
 * only for what is named here; their fields are JSON that neither database looks into. What a kind checks beyond that has
 * suites of its own, on both stores. `resources.test.ts` asserts that no way is missing.
 */
export const kindsOnPostgres: Readonly<Partial<Record<KindName, string>>> = {
  ip_policy: 'is stored, and nothing more',
  api_key: 'has an owner; its token is minted, and claimed by its digest',
  user: 'is for admins, and each write reads the other users',
  https_edge: 'carries modules, claims names, and is shown with its children',
  https_edge_route: 'has its parent in the path, and claims a match below it',
  ip_policy_rule: 'has its parent in the body',
  weighted_backend: 'refers to others, which a recursive query follows',
  reserved_addr: 'gets a free port inside the transaction',
  reserved_domain: 'has a field that DELETE clears, and a fact that is stored beside it',
  tls_certificate: 'is checked before the transaction, on another thread; its key is sealed',
  ssh_certificate_authority: 'is made before the transaction, with an id that is chosen for it',
}

/** The same for modules, by host and name: all are rows of one table, written and read by one code. */
export const modulesOnPostgres: Readonly<Record<string, string>> = {
  'https_edge tls_termination': 'is stored, and nothing more',
  'tcp_edge ip_restriction': 'refers to a list, from a host without a parent',
  'https_edge_route backend': 'refers to a backend, whose nesting is checked',
  'https_edge_route oidc': 'has a secret, which is sealed',
  'https_edge_route saml': 'is shown with what is read from elsewhere',
  'https_edge_route policy': 'refers to others at any depth, and is checked before the transaction',
  'https_edge_route traffic_policy': 'is another spelling of a module',
}

/** The kinds that a suite tests on this target. */
export function kindsOn(target: Target): KindName[] {
  return kindNames.filter((kind) => isOn(target, kindsOnPostgres, kind))
}

/** Whether a suite tests the module of this host on this target. */
export function isModuleOn(target: Target, { host, module }: { host: string; module: string }): boolean {
  return isOn(target, modulesOnPostgres, `${host} ${module}`)
}

function isOn({ name }: Target, onPostgres: Readonly<Record<string, string>>, each: string): boolean {
  return name !== 'postgres' || Object.hasOwn(onPostgres, each)
}
