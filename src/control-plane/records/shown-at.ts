/** Looks up what modules need whose answers contain addresses of their own; few do. */
import { modules } from '../../modules/forms.ts'
import type { ShownAt } from '../../modules/module.ts'
import type { RequestKey } from '../../modules/saml/request-key.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { fieldsOf } from '../resources/resource.ts'
import type { Store } from '../store/store.ts'
import type { Complete } from './show-resource.ts'

export interface ShowingModules {
  readonly store: Store
  readonly requestKey: () => Promise<RequestKey>
}

const showing: readonly string[] = modules.filter(({ shows }) => shows).map(({ name }) => name)

/** Adds to `record` and its children what their modules need to be shown. Do not call this inside a transaction. */
export async function withShownAt(record: Complete, from: ShowingModules, parent?: Complete): Promise<Complete> {
  const children: Complete[] = []
  for (const child of record.children) children.push(await withShownAt(child, from, record))
  const needs = showing.some((name) => record.modules.has(name))
  if (!needs) return record.children.length > 0 ? { ...record, children } : record
  return { ...record, children, shownAt: await shownAt(record, from, parent) }
}

/** `parent`: the edge, if already read. */
export async function shownAt(
  { id, parentId }: Pick<Complete, 'id' | 'parentId'>,
  { store, requestKey }: ShowingModules,
  parent?: Pick<Complete, 'fields'>,
): Promise<ShownAt> {
  const edge = parent ?? (await store.read((reader) => reader.resource(httpsEdges.kind, parentId ?? '')))
  const { hostports = [] } = edge ? fieldsOf(httpsEdges, edge) : {}
  return { id, hostports, requestCertificate: (await requestKey()).certificate }
}
