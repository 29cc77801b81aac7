/** The database's history: each migration is written once, in Kysely's schema builder, and runs on both dialects. */
import { type ColumnDefinitionBuilder, type CreateTableBuilder, type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { DialectFacts } from './dialect.ts'
import type { Tables } from './tables.ts'

/** Brings the database to the newest schema. Several nodes may call it at once: on PostgreSQL a lock serialises them. */
export async function migrate(db: Kysely<Tables>, facts: DialectFacts, { isAsked = true } = {}): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(facts) } })
  if (!isAsked) {
    const known = await migrator.getMigrations()
    const missing = known.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name)
    if (missing.length > 0 && missing.length < known.length) throw new OlderDatabase(missing)
  }
  const { error } = await migrator.migrateToLatest()
  const history = error instanceof Error && HISTORY_FAULT.exec(error.message)
  if (history) {
    const [, unknown] = history
    throw new Error(
      unknown === undefined
        ? 'the migrations of this database ran in another order than those of this version of Postern; run the version that made it, or restore a backup'
        : `the database was last used by a newer version of Postern: this one does not know its migration ${unknown}; run that version, or restore a backup from before it`,
    )
  }
  if (error) throw new Error('migrate the database', { cause: error })
}

/** The database was made by an older version, and nobody asked to change that: its server may be running. */
export class OlderDatabase extends Error {
  constructor(missing: readonly string[]) {
    super(
      `the database is of an older version of Postern: this command would first change its tables (${missing.join(', ')}), and that version could not start with it any more; run the command of that version, or stop its server and repeat this one with --migrate`,
    )
    this.name = 'OlderDatabase'
  }
}

/** Kysely's error for a database whose migrations are not a prefix of ours; it names a migration that we do not have. */
const HISTORY_FAULT = /^corrupted migrations: (?:previously executed migration (\S+) is missing)?/

type ColumnType = Parameters<CreateTableBuilder<string>['addColumn']>[1]

const notNull = (column: ColumnDefinitionBuilder) => column.notNull()

/** Adds columns of one type that are never null. */
function columns(type: ColumnType, ...names: readonly string[]) {
  return (table: CreateTableBuilder<string, string>) =>
    names.reduce((made, name) => made.addColumn(name, type, notNull), table)
}

function index(db: Kysely<unknown>, table: string, name: string, names: string[]) {
  return db.schema.createIndex(`${table}_${name}`).on(table).columns(names)
}

function migrations({ binaryText, autoIncrement }: DialectFacts): Record<string, Migration> {
  return {
    '0001_resources': {
      async up(db: Kysely<unknown>) {
        // Ids sort by creation only when compared byte by byte.
        const id = sql.raw(binaryText)
        await db.schema
          .createTable('resources')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('kind', 'text', notNull)
          .addColumn('parent_id', id, (c) => c.references('resources.id').onDelete('cascade'))
          .addColumn('owner_id', id, (c) => c.references('resources.id').onDelete('cascade'))
          .$call(columns('text', 'created_at', 'fields'))
          .execute()
        await index(db, 'resources', 'by_kind', ['kind', 'id']).execute()
        await index(db, 'resources', 'by_owner', ['owner_id', 'kind', 'id']).execute()
        await index(db, 'resources', 'by_parent', ['parent_id', 'id']).execute()

        await db.schema
          .createTable('modules')
          .addColumn('host_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .$call(columns('text', 'module', 'config'))
          .addPrimaryKeyConstraint('modules_pkey', ['host_id', 'module'])
          .execute()

        await db.schema
          .createTable('refs')
          .addColumn('from_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .addColumn('slot', 'text', notNull)
          // `restrict` is the delete protection of D28.
          .addColumn('to_id', id, (c) => c.notNull().references('resources.id').onDelete('restrict'))
          .addPrimaryKeyConstraint('refs_pkey', ['from_id', 'slot', 'to_id'])
          .execute()
        await index(db, 'refs', 'by_target', ['to_id']).execute()

        await db.schema
          .createTable('claims')
          .$call(columns('text', 'scope', 'key'))
          .addColumn('holder_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .addPrimaryKeyConstraint('claims_pkey', ['scope', 'key'])
          .execute()
        await index(db, 'claims', 'by_holder', ['holder_id']).execute()

        await db.schema
          .createTable('changes')
          .addColumn('revision', sql.raw(autoIncrement), (c) => c.primaryKey())
          .addColumn('kind', 'text', notNull)
          .addColumn('id', id, notNull)
          .execute()

        await db.schema
          .createTable('meta')
          .addColumn('key', 'text', (c) => c.primaryKey())
          .addColumn('value', 'text', notNull)
          .execute()
      },
    },
    '0002_logins': {
      async up(db: Kysely<unknown>) {
        const id = sql.raw(binaryText)
        await db.schema
          .createTable('login_users')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('key', 'text', (c) => c.notNull().unique())
          .$call(columns('text', 'provider', 'provider_url', 'provider_user_id', 'username', 'email', 'name'))
          .$call(columns('bigint', 'created_at', 'last_login_at', 'last_seen_at'))
          .execute()
        await index(db, 'login_users', 'by_last_seen', ['last_seen_at']).execute()

        await db.schema
          .createTable('login_sessions')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('user_id', id, (c) => c.notNull().references('login_users.id').onDelete('cascade'))
          .$call(columns('text', 'browser', 'host', 'edge_id', 'route_id', 'identity'))
          .$call(columns('text', 'login_user', 'kept', 'ip', 'user_agent'))
          .$call(columns('bigint', 'created_at', 'checked_at', 'last_seen_at'))
          .addColumn('expires_at', 'bigint')
          .execute()
        await index(db, 'login_sessions', 'by_place', ['browser', 'route_id']).unique().execute()
        await index(db, 'login_sessions', 'by_user', ['user_id', 'last_seen_at']).execute()
        await index(db, 'login_sessions', 'by_last_seen', ['last_seen_at']).execute()
        await index(db, 'login_sessions', 'by_end', ['expires_at']).execute()
      },
    },
    '0003_used_answers': {
      async up(db: Kysely<unknown>) {
        await db.schema
          .createTable('used_answers')
          .addColumn('key', 'text', (c) => c.primaryKey())
          .addColumn('expires_at', 'bigint', notNull)
          .execute()
        await index(db, 'used_answers', 'by_end', ['expires_at']).execute()
      },
    },
    '0004_online': {
      async up(db: Kysely<unknown>) {
        const id = sql.raw(binaryText)
        // No foreign key refers to a node: a lost one may have a million rows, which are removed a few at a time.
        await db.schema
          .createTable('nodes')
          .addColumn('id', id, (c) => c.primaryKey())
          .$call(columns('text', 'name', 'address', 'agent_addresses', 'region', 'version', 'since'))
          .$call(columns('integer', 'is_leaving', 'sessions'))
          .addColumn('expires_at', 'bigint', notNull)
          .execute()

        await db.schema
          .createTable('online_sessions')
          .addColumn('id', id, (c) => c.primaryKey())
          .$call(columns(id, 'node_id', 'plane_id', 'credential_id'))
          .addColumn('certificate_id', id)
          .addColumn('fields', 'text', notNull)
          .execute()
        await index(db, 'online_sessions', 'by_node', ['node_id', 'id']).execute()
        await index(db, 'online_sessions', 'by_credential', ['credential_id']).execute()

        await db.schema
          .createTable('online_tunnels')
          .addColumn('id', id, (c) => c.primaryKey())
          .$call(columns(id, 'node_id', 'plane_id', 'session_id'))
          .addColumn('endpoint_id', id)
          .addColumn('fields', 'text', notNull)
          .execute()
        await index(db, 'online_tunnels', 'by_node', ['node_id', 'id']).execute()
        await index(db, 'online_tunnels', 'by_session', ['session_id', 'id']).execute()
        await index(db, 'online_tunnels', 'by_endpoint', ['endpoint_id']).unique().execute()
        await index(db, 'online_tunnels', 'by_node_and_endpoint', ['node_id', 'endpoint_id']).execute()

        await db.schema
          .createTable('online_labels')
          .$call(columns(id, 'pair', 'tunnel_id', 'node_id'))
          .addPrimaryKeyConstraint('online_labels_pkey', ['pair', 'tunnel_id'])
          .execute()
        await index(db, 'online_labels', 'by_node', ['node_id']).execute()
        await index(db, 'online_labels', 'by_tunnel', ['tunnel_id']).execute()

        await db.schema
          .createTable('places')
          .addColumn('place', id, (c) => c.primaryKey())
          .addColumn('owner_id', id, notNull)
          .addColumn('is_pooled', 'integer', notNull)
          .addColumn('digest', 'text', notNull)
          .addColumn('is_unnamed', 'integer', notNull)
          .addColumn('port', 'integer')
          .addColumn('config', 'text', notNull)
          .execute()
        await index(db, 'places', 'by_port', ['port', 'place']).execute()

        await db.schema
          .createTable('place_holders')
          .addColumn('place', id, (c) => c.notNull().references('places.place').onDelete('cascade'))
          .$call(columns(id, 'slot', 'tunnel_id', 'session_id', 'node_id', 'plane_id'))
          .addColumn('version', 'text', notNull)
          .addPrimaryKeyConstraint('place_holders_pkey', ['place', 'slot'])
          .execute()
        await index(db, 'place_holders', 'by_node', ['node_id']).execute()
        await index(db, 'place_holders', 'by_tunnel', ['tunnel_id']).execute()
      },
    },
    '0005_certificates': {
      async up(db: Kysely<unknown>) {
        const id = sql.raw(binaryText)
        await db.schema
          .createTable('acme_accounts')
          .addColumn('directory', id, (c) => c.primaryKey())
          .$call(columns('text', 'key', 'url'))
          .execute()

        await db.schema
          .createTable('managed_names')
          .addColumn('name', id, (c) => c.primaryKey())
          .addColumn('stage', 'integer', notNull)
          .addColumn('due_at', 'bigint', notNull)
          .addColumn('holder', 'text', notNull)
          .addColumn('held_until', 'bigint', notNull)
          .$call(columns('text', 'order_key', 'state'))
          .execute()
        await index(db, 'managed_names', 'by_due', ['stage', 'due_at']).execute()

        await db.schema
          .createTable('acme_orders')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('begun_at', 'bigint', notNull)
          .execute()
        await index(db, 'acme_orders', 'by_time', ['begun_at']).execute()

        await db.schema
          .createTable('acme_challenges')
          .addColumn('name', id, (c) => c.primaryKey())
          .$call(columns('text', 'kind', 'token', 'answer'))
          .execute()
      },
    },
  }
}
