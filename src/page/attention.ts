/** Finds what is set up and cannot work, or soon will not: edges that lead nowhere, certificates that run out. */

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
  readonly certificates: readonly ListedRow[]
  readonly authorities: readonly ListedRow[]
  readonly now: number
}

export interface AttentionItem {
  /** Where it is mended. */
  readonly path: string
  readonly name: string
  readonly why: string
}

export function attentionOf({
  https,
  tls,
  tcp,
  groups,
  certificates,
  authorities,
  now,
}: AttentionInput): AttentionItem[] {
  const silent = new Set(groups.filter(({ tunnels }) => Array.isArray(tunnels) && tunnels.length === 0).map(idOf))
  const layer4 = [
    ...tls.map((edge) => ({ edge, path: `/edges/tls/${idOf(edge)}` })),
    ...tcp.map((edge) => ({ edge, path: `/edges/tcp/${idOf(edge)}` })),
  ]
  return [
    ...https.flatMap((edge) => httpsFaults(edge, silent)),
    ...layer4.flatMap(({ edge, path }) => {
      const why = [hostportFault(edge), backendFault(edge, silent)].filter((each) => each !== '')
      return why.map((each) => ({ path, name: edgeName(edge), why: each }))
    }),
    ...certificates.flatMap((row) => ending(row, `/tls_certificates/${idOf(row)}`, now)),
    ...authorities.flatMap((row) => ending(row, `/certificate_authorities/${idOf(row)}`, now)),
  ]
}

function httpsFaults(edge: ListedRow, silent: ReadonlySet<string>): AttentionItem[] {
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

function backendFault({ backend }: ListedRow, silent: ReadonlySet<string>): string {
  // A list shows the routes of an edge as references alone in some versions; then nothing is known.
  if (backend === undefined) return ''
  if (!isRecord(backend) || backend.enabled !== true) return 'has no backend, so visitors get an error'
  const to = isRecord(backend.backend) ? textIn(backend.backend.id) : ''
  return silent.has(to) ? 'leads to a tunnel group that no agent serves now' : ''
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
