/** Finds what does not work or soon will not: edges that lead nowhere, certificates that expire or were never issued. */

import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'
import { fromNow } from './time-text.ts'

/** How long before it expires a certificate is listed, in milliseconds. */
const SOON_MS = 30 * 86_400_000

type EdgeList = 'https' | 'tls' | 'tcp'
type BackendList = 'groups' | 'weighted' | 'failover'
/** `broken` is what the server reports it cannot serve. */
type OtherList = 'domains' | 'certificates' | 'authorities' | 'broken'

export type AttentionInput = Readonly<Record<EdgeList | BackendList | OtherList, readonly ListedRow[]>>

interface AttentionItem {
  /** Where to fix it. */
  readonly path: string
  readonly name: string
  readonly why: string
}

interface ShownEdge {
  readonly path: string
  readonly edge: ListedRow
}

export function attentionOf(input: AttentionInput & { readonly now: number }): AttentionItem[] {
  const { domains, certificates, authorities, now } = input
  const offline = offlineBackends(input)
  const edges = (['https', 'tls', 'tcp'] as const).flatMap((proto) =>
    input[proto].map((edge): ShownEdge => ({ path: `/edges/${proto}/${idOf(edge)}`, edge })),
  )
  return [
    ...brokenFaults(input.broken, edges),
    ...edges.flatMap((shown) => edgeFaults(shown, offline)),
    ...domains.flatMap((row) => unissuedItems(row)),
    ...certificates.flatMap((row) => ending(row, `/tls_certificates/${idOf(row)}`, now)),
    ...authorities.flatMap((row) => ending(row, `/certificate_authorities/${idOf(row)}`, now)),
  ]
}

function brokenFaults(broken: readonly ListedRow[], edges: readonly ShownEdge[]): AttentionItem[] {
  const known = new Map(edges.map((shown) => [idOf(shown.edge), shown]))
  return broken.flatMap(({ edge_id, route_id, reason }) => {
    const found = known.get(textIn(edge_id))
    if (!found) return []
    const path = `${found.path}${route_id === null ? '' : `/routes/${textIn(route_id)}`}`
    return [{ path, name: edgeName(found.edge), why: `refuses traffic: ${textIn(reason)}` }]
  })
}

/** Why a backend can send visitors nowhere at the moment, by id. */
type OfflineBackends = ReadonlyMap<string, string>

function offlineBackends({ groups, weighted, failover }: AttentionInput): OfflineBackends {
  const empty = groups.filter(({ tunnels }) => Array.isArray(tunnels) && tunnels.length === 0)
  const offline = new Map(empty.map((group) => [idOf(group), 'leads to a tunnel group with no agent online']))
  const nested = [
    ...weighted.map((row) => ({ id: idOf(row), children: weightsOf(row) })),
    ...failover.map((row) => ({
      id: idOf(row),
      children: Array.isArray(row.backends) ? row.backends.map(textIn) : [],
    })),
  ]
  // Backends may be nested, so each round may find more.
  for (let known = -1; known < offline.size; ) {
    known = offline.size
    for (const { id, children } of nested) {
      if (children.every((child) => offline.has(child))) {
        offline.set(id, 'leads to several backends, none of which has an agent online')
      }
    }
  }
  return offline
}

/** The backends that can be chosen: those with a weight. */
function weightsOf({ backends }: ListedRow): string[] {
  const all = Object.entries(isRecord(backends) ? backends : {})
  return all.filter(([, weight]) => weight !== 0).map(([id]) => id)
}

/** An HTTPS edge leads to the backends of its routes, any other to its own. */
function edgeFaults({ path, edge }: ShownEdge, offline: OfflineBackends): AttentionItem[] {
  const isHttps = path.startsWith('/edges/https/')
  const routes = (isHttps && Array.isArray(edge.routes) ? edge.routes : []).filter(isRecord)
  const noRoutes = routes.length === 0 ? 'has no routes, so every request gets a 404' : ''
  const own = [hostportFault(edge), isHttps ? noRoutes : backendFault(edge, offline)]
  return [
    ...own.filter((why) => why !== '').map((why) => ({ path, name: edgeName(edge), why })),
    ...routes.flatMap((route) => {
      const why = backendFault(route, offline)
      if (why === '') return []
      return [{ path: `${path}/routes/${idOf(route)}`, name: `${edgeName(edge)} ${textIn(route.match)}`, why }]
    }),
  ]
}

function hostportFault({ hostports }: ListedRow): string {
  return Array.isArray(hostports) && hostports.length > 0 ? '' : 'has no hostport, so it cannot be reached'
}

function backendFault({ backend }: ListedRow, offline: OfflineBackends): string {
  // Some versions list the routes of an edge as references only, which say nothing about their backends.
  if (backend === undefined) return ''
  if (!isRecord(backend) || backend.enabled !== true) return 'has no backend, so visitors get an error'
  const to = isRecord(backend.backend) ? textIn(backend.backend.id) : ''
  return offline.get(to) ?? ''
}

/** A name for which the server failed to get a certificate. */
function unissuedItems(row: ListedRow): AttentionItem[] {
  const { certificate_management_status: status } = row
  const job = isRecord(status) && isRecord(status.provisioning_job) ? status.provisioning_job : undefined
  if (typeof job?.error_code !== 'string') return []
  const name = textIn(row.domain)
  return [{ path: `/reserved_domains/${idOf(row)}`, name, why: `could not get a certificate: ${textIn(job.msg)}` }]
}

function ending(row: ListedRow, path: string, now: number): AttentionItem[] {
  const end = Date.parse(textIn(row.not_after))
  if (!(end - now < SOON_MS)) return []
  const name = textIn(row.subject_common_name || row.description || row.id)
  return [{ path, name, why: `${end < now ? 'expired' : 'expires'} ${fromNow(end, now)}` }]
}

function edgeName(edge: ListedRow): string {
  const [first] = Array.isArray(edge.hostports) ? edge.hostports : []
  return textIn(first ?? (edge.description || edge.id))
}

function idOf({ id }: ListedRow): string {
  return textIn(id)
}
