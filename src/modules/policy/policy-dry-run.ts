/** The edge of a dry run of a policy that no edge has yet. */
import type { Described } from '../../model/described.ts'
import type { EdgeConfig, ModuleSettings } from '../../model/edge-config.ts'
import type { Lookup, ModuleConfig, Place } from '../module.ts'
import { policy } from './form.ts'

/** The place of a policy for the described traffic; undefined when no traffic is described. */
export function askedPlace({ request, connection }: Pick<Described, 'request' | 'connection'>): Place | undefined {
  if (request) return 'route'
  if (!connection) return undefined
  const { protocol, server_name, tls } = connection
  return protocol || (server_name !== '' || tls ? 'tls' : 'tcp')
}

/** The id of the edge and route, which are not stored. */
const DRY_RUN = 'dry_run'

/** An edge that has only this policy, which was checked before, and that serves every name in the described traffic. */
export function policyEdge(config: ModuleConfig, place: Place, asked: Described, lookup: Lookup): EdgeConfig {
  // The result of the module's `accept`.
  const given = config as Parameters<typeof policy.resolve>[0]
  const settings = policy.resolve(given, lookup, place)
  const backend = { kind: 'tunnel', tunnelId: DRY_RUN, httpVersion: 1, proxyHeader: 0 }
  const modules: ModuleSettings = { backend, ...(config.enabled && { policy: settings }) }
  const edge = { id: DRY_RUN, names: namesIn(asked), ports: [], modules: {}, routes: [] }
  if (place === 'route') {
    const route = { id: DRY_RUN, matchType: 'path_prefix', match: '/', modules } as const
    return { ...edge, kind: 'https', routes: [route] }
  }
  const terminates = place === 'tls' && policy.needs(given) !== 'bytes'
  const termination = { tls_termination: { terminate: 'edge', minVersion: '1.0' } }
  return { ...edge, kind: place === 'tls' ? 'tls' : 'tcp', modules: { ...modules, ...(terminates && termination) } }
}

/** The names in the described traffic. The edge will refuse those that are invalid. */
function namesIn({ request, connection }: Described): string[] {
  const [, ofUrl = ''] = /^https?:\/\/([^/?#]*)/i.exec(request?.url ?? '') ?? []
  const [, ofHeader] = Object.entries(request?.headers ?? {}).find(([name]) => name.toLowerCase() === 'host') ?? []
  const named = [ofUrl, ofHeader?.[0] ?? ''].map((authority) => authority.toLowerCase().replace(/\.?(:\d*)?$/, ''))
  const names = [...named, connection?.server_name.toLowerCase() ?? ''].filter((name) => name !== '')
  return names.length === 0 ? [USUAL_NAME] : names
}

/** RFC 2606 */
const USUAL_NAME = 'example.com'
