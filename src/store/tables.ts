/**
 * The tables, as Kysely sees them.
 *
 * All resources share one table on purpose: a backend id may name one of several kinds, and only rows of one table can
 * be the target of a real foreign key. So delete protection, dangling references and cascades are kept by the database
 * itself, and a new resource needs no table of its own. What only that resource understands is JSON in `fields`.
 */
import type { Generated } from 'kysely'

export interface Tables {
  resources: {
    id: string
    kind: string
    /** What it goes with: a route's edge, a rule's IP policy. */
    parent_id: string | null
    owner_id: string | null
    created_at: string
    fields: string
  }
  modules: { host_id: string; module: string; config: string }
  /** Who names whom, and in which field or module. */
  refs: { from_id: string; slot: string; to_id: string }
  /** Names that only one resource may hold: hostports, token hashes, key fingerprints, matches of routes. */
  claims: { scope: string; key: string; holder_id: string }
  /** That something changed, never what; nodes read it from their last revision on. */
  changes: { revision: Generated<number>; kind: string; id: string }
  /** Facts about this database, such as which key its secrets are sealed with. */
  meta: { key: string; value: string }
}
