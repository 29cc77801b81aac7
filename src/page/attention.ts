/** Finds what is set up and cannot work, or soon will not: edges that lead nowhere, certificates that run out or never came. */

import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'
import { fromNow } from './time-text.ts'

/** How long before its end a certificate is told of, in milliseconds. */
const SOON_MS = 30 * 86_400_000

export interface AttentionInput {
  readonly https: readonly ListedRow[]
  readonly tls: readonly ListedRow[]
  readonly tcp: readonly ListedRow[]
  readonly groups: readonly ListedRow[]
  readonly weighted: readonly ListedRow[]
  readonly failover: readonly ListedRow[]
  readonly domains: readonly ListedRow[]
  readonly certificates: readonly ListedRow[]
  readonly authorities: readonly ListedRow[]
  /** What the server says that it cannot serve. */
  readonly broken: readonly ListedRow[]
  readonly now: number
}

export interface AttentionItem {
  /** Where it is mended. */
  readonly path: string
  readonly name: string
  readonly why: string
}

export function attentionOf(input: AttentionInput): AttentionItem[] {
  const { https, tls, tcp, domains, certificates, authorities, now } = input
  const silent = silentBackends(input)
  const layer4 = [
    ...tls.map((edge) => ({ edge, path: `/edges/tls/${idOf(edge)}` })),
    ...tcp.map((edge) => ({ edge, path: `/edges/tcp/${idOf(edge)}` })),
  ]
  return [
    ...brokenFaults(input),
    ...https.flatMap((edge) => httpsFaults(edge, silent)),
    ...layer4.flatMap(({ edge, path }) => {
      const why = [hostportFault(edge), backendFault(edge, silent)].filter((each) => each !== '')
      return why.map((each) => ({ path, name: edgeName(edge), why: each }))
    }),
    ...domains.flatMap((row) => unissued(row)),
    ...certificates.flatMap((row) => ending(row, `/tls_certificates/${idOf(row)}`, now)),
    ...authorities.flatMap((row) => ending(row, `/certificate_authorities/${idOf(row)}`, now)),
  ]
}

function brokenFaults({ broken, https, tls, tcp }: AttentionInput): AttentionItem[] {
  const places = [
    { path: '/edges/https', edges: https },
    { path: '/edges/tls', edges: tls },
    { path: '/edges/tcp', edges: tcp },
  ]
  const known = new Map(places.flatMap(({ path, edges }) => edges.map((edge) => [idOf(edge), { path, edge }] as const)))
  return broken.flatMap(({ edge_id, route_id, reason }) => {
    const found = known.get(textIn(edge_id))
    if (!found) return []
    const path = `${found.path}/${textIn(edge_id)}${route_id === null ? '' : `/routes/${textIn(route_id)}`}`
    return [{ path, name: edgeName(found.edge), why: `refuses traffic: ${textIn(reason)}` }]
  })
}

/** Backends that send a visitor nowhere now, and why, by id. */
type SilentBackends = ReadonlyMap<string, string>

function silentBackends({ groups, weighted, failover }: AttentionInput): SilentBackends {
  const empty = groups.filter(({ tunnels }) => Array.isArray(tunnels) && tunnels.length === 0)
  const silent = new Map(empty.map((group) => [idOf(group), 'leads to a tunnel group that no agent serves now']))
  const nested = [
    ...weighted.map((row) => ({ id: idOf(row), children: weightsOf(row) })),
    ...failover.map((row) => ({
      id: idOf(row),
      children: Array.isArray(row.backends) ? row.backends.map(textIn) : [],
    })),
  ]
  // They may stand inside each other, so each round may find more.
  for (let known = -1; known < silent.size; ) {
    known = silent.size
    for (const { id, children } of nested) {
      if (children.every((child) => silent.has(child))) {
        silent.set(id, 'leads to several backends, and no agent serves any of them now')
      }
    }
  }
  return silent
}

/** Those that may be chosen. */
function weightsOf({ backends }: ListedRow): string[] {
  const all = Object.entries(isRecord(backends) ? backends : {})
  return all.filter(([, weight]) => weight !== 0).map(([id]) => id)
}

function httpsFaults(edge: ListedRow, silent: SilentBackends): AttentionItem[] {
  const path = `/edges/https/${idOf(edge)}`
  const routes = (Array.isArray(edge.routes) ? edge.routes : []).filter(isRecord)
  const own = [hostportFault(edge), routes.length === 0 ? 'has no route, so every request is answered with 404' : '']
  return [
    ...own.filter((why) => why !== '').map((why) => ({ path, name: edgeName(edge), why })),
    ...routes.flatMap((route) => {
      const why = backendFault(route, silent)
      if (why === '') return []
      return [{ path: `${path}/routes/${idOf(route)}`, name: `${edgeName(edge)} ${textIn(route.match)}`, why }]
    }),
  ]
}

function hostportFault({ hostports }: ListedRow): string {
  return Array.isArray(hostports) && hostports.length > 0 ? '' : 'has no address, so nobody reaches it'
}

function backendFault({ backend }: ListedRow, silent: SilentBackends): string {
  // A list shows the routes of an edge as references alone in some versions; then nothing is known.
  if (backend === undefined) return ''
  if (!isRecord(backend) || backend.enabled !== true) return 'has no backend, so visitors get an error'
  const to = isRecord(backend.backend) ? textIn(backend.backend.id) : ''
  return silent.get(to) ?? ''
}

/** A name whose certificate the server tried to get, without success. */
function unissued(row: ListedRow): AttentionItem[] {
  const { certificate_management_status: status } = row
  const job = isRecord(status) && isRecord(status.provisioning_job) ? status.provisioning_job : undefined
  if (typeof job?.error_code !== 'string') return []
  const name = textIn(row.domain)
  return [{ path: `/reserved_domains/${idOf(row)}`, name, why: `did not get its certificate: ${textIn(job.msg)}` }]
}

function ending(row: ListedRow, path: string, now: number): AttentionItem[] {
  const end = Date.parse(textIn(row.not_after))
  if (!(end - now < SOON_MS)) return []
  const name = textIn(row.subject_common_name || row.description || row.id)
  return [{ path, name, why: `${end < now ? 'ran out' : 'runs out'} ${fromNow(end, now)}` }]
}

function edgeName(edge: ListedRow): string {
  const [first] = Array.isArray(edge.hostports) ? edge.hostports : []
  return textIn(first ?? (edge.description || edge.id))
}

function idOf({ id }: ListedRow): string {
  return textIn(id)
}
