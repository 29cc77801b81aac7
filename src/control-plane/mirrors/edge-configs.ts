/** Turns stored edges into edge configurations for the data plane, with everything they refer to included. */

import type { Sealer } from '../../lib/secrets/seal.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { BackendPlan, EdgeConfig, EdgeKind, ModuleSettings, RouteConfig } from '../../model/edge-config.ts'
import { readHostport } from '../../model/hostport.ts'
import type { Lookup } from '../../modules/module.ts'
import { openModules } from '../records/module-rows.ts'
import { rulesByPolicy } from '../records/stored-restrictions.ts'
import { certificateAuthorities } from '../resources/certificate-authorities.ts'
import { failoverBackends } from '../resources/failover-backends.ts'
import { httpResponseBackends } from '../resources/http-response-backends.ts'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { ipPolicies } from '../resources/ip-policies.ts'
import { fieldsOf, type Resource } from '../resources/resource.ts'
import { staticBackends } from '../resources/static-backends.ts'
import { tcpEdges } from '../resources/tcp-edges.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import { tunnelGroupBackends } from '../resources/tunnel-group-backends.ts'
import { weightedBackends } from '../resources/weighted-backends.ts'
import type { Reader, StoredResource } from '../store/reader.ts'

interface EdgeResource {
  readonly resource: typeof tcpEdges | typeof tlsEdges | typeof httpsEdges
  readonly kind: EdgeKind
}

/** The resources that are edges, and what the data plane calls them. */
export const edgeResources: ReadonlyMap<string, EdgeResource> = new Map<string, EdgeResource>([
  [tcpEdges.kind, { resource: tcpEdges, kind: 'tcp' }],
  [tlsEdges.kind, { resource: tlsEdges, kind: 'tls' }],
  [httpsEdges.kind, { resource: httpsEdges, kind: 'https' }],
])

/** Reads `edges` with everything they refer to, in a few queries for all of them. */
export async function readEdgeConfigs(
  reader: Reader,
  sealer: Sealer,
  edges: readonly StoredResource[],
): Promise<EdgeConfig[]> {
  const https = edges.filter(({ kind }) => kind === httpsEdges.kind).map(({ id }) => id)
  const routes = await reader.children(httpsEdgeRoutes.kind, https)
  const named = await readNamed(reader, [...edges, ...routes])
  const lookup = lookupIn(named)
  const byEdge = Map.groupBy(routes, ({ parentId }) => parentId ?? '')
  const breath = othersTurn()
  const configs: EdgeConfig[] = []
  for (const edge of edges) {
    const known = edgeResources.get(edge.kind)
    if (!known) continue
    try {
      const ofEdge: RouteConfig[] = []
      for (const route of byEdge.get(edge.id) ?? []) {
        await breath()
        ofEdge.push(routeConfig(route, sealer, lookup))
      }
      configs.push(edgeConfig(edge, known, ofEdge, sealer, lookup))
    } catch (error) {
      // An edge without names is unreachable; it must not hold up the others.
      const broken = error instanceof Error ? error.message : String(error)
      configs.push({ id: edge.id, kind: known.kind, names: [], ports: [], modules: {}, routes: [], broken })
    }
    await breath()
  }
  return configs
}

function edgeConfig(
  edge: StoredResource,
  { resource, kind }: EdgeResource,
  routes: readonly RouteConfig[],
  sealer: Sealer,
  lookup: Lookup,
): EdgeConfig {
  const hostports = fieldsOf(resource, edge).hostports.map(readHostport)
  return {
    id: edge.id,
    kind,
    names: kind === 'tcp' ? [] : hostports.map(({ host }) => host),
    ports: kind === 'tcp' ? hostports.map(({ port }) => port) : [],
    ...settingsOf(resource, edge, sealer, lookup),
    routes,
  }
}

function routeConfig(route: StoredResource, sealer: Sealer, lookup: Lookup): RouteConfig {
  const { match_type: matchType, match } = fieldsOf(httpsEdgeRoutes, route)
  return { id: route.id, matchType, match, ...settingsOf(httpsEdgeRoutes, route, sealer, lookup) }
}

/** The enabled modules; if one cannot be resolved, the reason why nothing passes. */
function settingsOf(
  resource: Resource,
  stored: StoredResource,
  sealer: Sealer,
  lookup: Lookup,
): { modules: ModuleSettings; broken?: string } {
  const modules: Record<string, unknown> = {}
  try {
    const configs = openModules(sealer, resource, stored)
    const { place } = resource
    for (const { name, resolve } of resource.modules) {
      const config = configs.get(name)
      if (place && config?.enabled) modules[name] = resolve(config, lookup, place)
    }
    return { modules }
  } catch (error) {
    return { modules, broken: error instanceof Error ? error.message : String(error) }
  }
}

/** Everything that `from` refer to, over any number of steps: backends name further backends. */
async function readNamed(reader: Reader, from: readonly StoredResource[]) {
  const resources = new Map<string, StoredResource>()
  let ids = from.map(({ id }) => id)
  while (ids.length > 0) {
    const next = [...(await reader.referredBy(ids)).keys()].filter((id) => !resources.has(id))
    for (const resource of await reader.resources(next)) resources.set(resource.id, resource)
    ids = next
  }
  const policies = [...resources.values()].filter(({ kind }) => kind === ipPolicies.kind).map(({ id }) => id)
  return { resources, rules: await rulesByPolicy(reader, policies) }
}

/** Reads the IP policies that a policy document names; the policy itself is not stored, and the IP policies exist. */
export async function readIpRules(reader: Reader, ids: readonly string[]): Promise<Lookup> {
  const resources = new Map((await reader.resources(ids)).map((each) => [each.id, each]))
  return lookupIn({ resources, rules: await rulesByPolicy(reader, ids) })
}

function lookupIn({ resources, rules }: Awaited<ReturnType<typeof readNamed>>): Lookup {
  const find = (id: string): StoredResource => {
    const found = resources.get(id)
    if (!found) throw new Error(`${id} no longer exists`)
    return found
  }
  const backend = (id: string): BackendPlan => planOf(find(id), backend)
  return {
    ipRules: (id) => (rules.get(find(id).id) ?? []).map(({ cidr, action }) => ({ cidr, action })),
    authority: (id) => fieldsOf(certificateAuthorities, find(id)).ca_pem,
    backend,
  }
}

function planOf(stored: StoredResource, backend: (id: string) => BackendPlan): BackendPlan {
  const { id } = stored
  switch (stored.kind) {
    case tunnelGroupBackends.kind:
      return { kind: 'tunnel_group', id, labels: fieldsOf(tunnelGroupBackends, stored).labels }
    case httpResponseBackends.kind: {
      const { status_code: status, headers, body } = fieldsOf(httpResponseBackends, stored)
      return { kind: 'http_response', id, status, headers, body }
    }
    case staticBackends.kind: {
      const { address, tls } = fieldsOf(staticBackends, stored)
      const { host, port } = readHostport(address)
      return { kind: 'static', id, host: host.replace(/^\[|\]$/g, ''), port, tls: tls.enabled }
    }
    case failoverBackends.kind:
      return { kind: 'failover', id, children: fieldsOf(failoverBackends, stored).backends.map(backend) }
    case weightedBackends.kind: {
      const children = Object.entries(fieldsOf(weightedBackends, stored).backends)
      return { kind: 'weighted', id, children: children.map(([id, weight]) => ({ weight, plan: backend(id) })) }
    }
    default:
      throw new Error(`${id} is not a backend`)
  }
}
