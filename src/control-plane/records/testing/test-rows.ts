/** Rows for tests: stored resources with their modules and the resulting references. */
import { Sealer } from '../../../lib/secrets/seal.ts'
import type { ModuleConfig } from '../../../modules/module.ts'
import { resourceOf } from '../../resources/index.ts'
import type { Store } from '../../store/store.ts'
import { setMentions } from '../check-references.ts'
import { writeModules } from '../module-rows.ts'
import { resourceAt, sealFields } from '../sealed-fields.ts'
import { KEY_ID } from '../sealing.ts'

export interface TestRow {
  readonly id: string
  readonly kind: string
  readonly parentId?: string
  readonly fields: Readonly<Record<string, unknown>>
  /** By name of the module, in stored form except for secrets, which are sealed here. */
  readonly modules?: Readonly<Record<string, ModuleConfig>>
}

export const testSealer = new Sealer(Buffer.alloc(32, 7))

/** Sets the key of `store` to that of `testSealer`. */
export async function sealedBy(store: Store): Promise<Store> {
  await store.write((writer) => writer.keepMeta(KEY_ID, testSealer.keyId))
  return store
}

/** Stores `rows`, each after those that it names, without the checks of the API. */
export async function storeRows(store: Store, rows: readonly TestRow[]): Promise<void> {
  await store.write(async (writer) => {
    for (const { id, kind, parentId = null, fields, modules = {} } of rows) {
      const resource = resourceOf(kind)
      const row = { id, kind, parentId, ownerId: null, createdAt: '2026-01-01T00:00:00Z' }
      await writer.insert({ ...row, fields: sealFields(testSealer, resource.secrets, fields, resourceAt(id)) })
      await setMentions(writer, id, resource.mentions(fields), [])
      const writes = resource.modules.flatMap((module) => {
        const config = modules[module.name]
        return config ? [{ module, config, at: '' }] : []
      })
      await writeModules(writer, testSealer, resource, { id, modules: new Map() }, writes)
    }
  })
}

export const group = (id: string, labels: Record<string, string> = { app: 'web' }): TestRow => ({
  id,
  kind: 'tunnel_group_backend',
  fields: { labels },
})

export const failover = (id: string, ...backends: string[]): TestRow => ({
  id,
  kind: 'failover_backend',
  fields: { backends },
})

export const response = (id: string): TestRow => ({
  id,
  kind: 'http_response_backend',
  fields: { status_code: 503, headers: { 'retry-after': '60' }, body: 'Back soon.' },
})

export const policy = (id: string, ...rules: readonly [cidr: string, action: 'allow' | 'deny'][]): TestRow[] => [
  { id, kind: 'ip_policy', fields: {} },
  ...rules.map(([cidr, action], i) => ({
    id: `${id}_rule${i}`,
    kind: 'ip_policy_rule',
    parentId: id,
    fields: { cidr, action },
  })),
]

export const edge = (
  id: string,
  kind: 'tcp_edge' | 'tls_edge' | 'https_edge',
  hostports: readonly string[],
  modules: TestRow['modules'] = {},
): TestRow => ({ id, kind, fields: { hostports, metadata: '' }, modules })

export const route = (
  id: string,
  parentId: string,
  match: string,
  modules: TestRow['modules'] = {},
  matchType: 'exact_path' | 'path_prefix' = 'path_prefix',
): TestRow => ({ id, kind: 'https_edge_route', parentId, fields: { match, match_type: matchType }, modules })

export const backend = (backendId: string): ModuleConfig => ({ enabled: true, backend_id: backendId })
