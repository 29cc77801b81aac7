/** What an agent's endpoint serves, and the version of it. */
import { createHash } from 'node:crypto'
import { ID_LENGTH } from '../../lib/ids.ts'
import type { BackendPlan, EdgeConfig } from '../../model/edge-config.ts'
import type { AgentModules, EndpointRequest, ServedEndpoint } from '../../model/endpoint.ts'
import { poolLabels, poolVersion } from '../../model/pool.ts'

interface Configured {
  /** The owner of the agent's credential. */
  readonly ownerId: string
  readonly modules: AgentModules
  /** A digest with a key that all nodes have: base64url of 256 bits. */
  readonly digest: (text: string) => string
}

/** Length of a version: 192 bits, in `VERSION_CHARACTERS`. */
const VERSION_CHARS = 32

/** Length of a route id: 132 bits. */
const ROUTE_ID_CHARS = 22

export function endpointConfig(bind: EndpointRequest, from: Configured): Omit<ServedEndpoint, 'isUnnamed'> {
  return bind.isPooled ? poolConfig(bind, from) : ownConfig(bind, from)
}

/**
 * An endpoint of a single tunnel. When its agent comes back for the same address, the endpoint keeps its version. So other
 * nodes can reach it by what they know, even while they get no news.
 */
function ownConfig(bind: EndpointRequest, { ownerId, modules, digest }: Configured) {
  const { id, tunnel, credentialId } = bind
  const config = configOf(bind, modules, { id, routeId: routeIdOf(credentialId), ownerId, backend: tunnel })
  return { config, version: digest(`endpoint ${JSON.stringify(config)}`).slice(0, VERSION_CHARS) }
}

/** The pool at an address: the same for all tunnels that may share it. */
function poolConfig(bind: EndpointRequest, { ownerId, modules, digest }: Configured) {
  const { place, tunnel } = bind
  const like = { kind: 'tunnel_group', id: '', labels: {}, pool: { proxyHeader: tunnel.proxyHeader } } as const
  const version = poolVersion(configOf(bind, modules, { id: '', routeId: '', ownerId, backend: like }), digest)
  // It has the form of an id, but is derived from a digest.
  const id = `ep_${digest(`pool ${place} ${ownerId} ${version}`).replaceAll(/[-_]/g, '0').slice(0, ID_LENGTH)}`
  const backend = { ...like, id, labels: poolLabels(id) }
  const config = configOf(bind, modules, { id, routeId: routeIdOf(ownerId), ownerId, backend })
  return { config, version, pool: { ownerId, httpVersion: tunnel.httpVersion } }
}

interface Identity {
  readonly id: string
  readonly routeId: string
  readonly ownerId: string
  readonly backend: BackendPlan
}

/** The configuration of an endpoint; for HTTP, with one route for all paths. */
function configOf(
  { proto, host, port }: EndpointRequest,
  modules: AgentModules,
  { id, routeId, ownerId, backend }: Identity,
): EdgeConfig {
  const isHttp = proto === 'http' || proto === 'https'
  return {
    id,
    kind: proto,
    ownerId,
    names: port === undefined ? [host] : [],
    ports: port === undefined ? [] : [port],
    modules: isHttp ? modules.edge : { ...modules.edge, backend },
    routes: isHttp
      ? [
          {
            id: routeId,
            matchType: 'path_prefix',
            match: '/',
            modules: { ...modules.route, backend },
          },
        ]
      : [],
  }
}

/**
 * Logins of visitors are stored by name and route. They survive a restart of the agent with the same credential. Another
 * credential that gets the name later does not inherit them; in a pool the same goes for the owner.
 */
function routeIdOf(holderId: string): string {
  return createHash('sha256').update(`route of ${holderId}`).digest('base64url').slice(0, ROUTE_ID_CHARS)
}
