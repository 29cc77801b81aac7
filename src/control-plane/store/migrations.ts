/** The database's history: each migration is written once, in Kysely's schema builder, and runs on both dialects. */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { DialectFacts } from './dialect.ts'
import type { Tables } from './tables.ts'

/** Brings the database to the newest schema. Several nodes may call it at once: on PostgreSQL a lock serialises them. */
export async function migrate(db: Kysely<Tables>, facts: DialectFacts): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(facts) } })
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

/** Kysely's error for a database whose migrations are not a prefix of ours; it names a migration that we do not have. */
const HISTORY_FAULT = /^corrupted migrations: (?:previously executed migration (\S+) is missing)?/

function migrations({ binaryText, autoIncrement }: DialectFacts): Record<string, Migration> {
  return {
    '0001_resources': {
      async up(db: Kysely<unknown>) {
        // Ids sort by creation only when compared byte by byte.
        const id = sql.raw(binaryText)
        await db.schema
          .createTable('resources')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('kind', 'text', (c) => c.notNull())
          .addColumn('parent_id', id, (c) => c.references('resources.id').onDelete('cascade'))
          .addColumn('owner_id', id, (c) => c.references('resources.id').onDelete('cascade'))
          .addColumn('created_at', 'text', (c) => c.notNull())
          .addColumn('fields', 'text', (c) => c.notNull())
          .execute()
        await db.schema.createIndex('resources_by_kind').on('resources').columns(['kind', 'id']).execute()
        await db.schema.createIndex('resources_by_owner').on('resources').columns(['owner_id', 'kind', 'id']).execute()
        await db.schema.createIndex('resources_by_parent').on('resources').columns(['parent_id', 'id']).execute()

        await db.schema
          .createTable('modules')
          .addColumn('host_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .addColumn('module', 'text', (c) => c.notNull())
          .addColumn('config', 'text', (c) => c.notNull())
          .addPrimaryKeyConstraint('modules_pkey', ['host_id', 'module'])
          .execute()

        await db.schema
          .createTable('refs')
          .addColumn('from_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .addColumn('slot', 'text', (c) => c.notNull())
          // `restrict` is the delete protection of D28.
          .addColumn('to_id', id, (c) => c.notNull().references('resources.id').onDelete('restrict'))
          .addPrimaryKeyConstraint('refs_pkey', ['from_id', 'slot', 'to_id'])
          .execute()
        await db.schema.createIndex('refs_by_target').on('refs').columns(['to_id']).execute()

        await db.schema
          .createTable('claims')
          .addColumn('scope', 'text', (c) => c.notNull())
          .addColumn('key', 'text', (c) => c.notNull())
          .addColumn('holder_id', id, (c) => c.notNull().references('resources.id').onDelete('cascade'))
          .addPrimaryKeyConstraint('claims_pkey', ['scope', 'key'])
          .execute()
        await db.schema.createIndex('claims_by_holder').on('claims').columns(['holder_id']).execute()

        await db.schema
          .createTable('changes')
          .addColumn('revision', sql.raw(autoIncrement), (c) => c.primaryKey())
          .addColumn('kind', 'text', (c) => c.notNull())
          .addColumn('id', id, (c) => c.notNull())
          .execute()

        await db.schema
          .createTable('meta')
          .addColumn('key', 'text', (c) => c.primaryKey())
          .addColumn('value', 'text', (c) => c.notNull())
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
          .addColumn('provider', 'text', (c) => c.notNull())
          .addColumn('provider_url', 'text', (c) => c.notNull())
          .addColumn('provider_user_id', 'text', (c) => c.notNull())
          .addColumn('username', 'text', (c) => c.notNull())
          .addColumn('email', 'text', (c) => c.notNull())
          .addColumn('name', 'text', (c) => c.notNull())
          .addColumn('created_at', 'bigint', (c) => c.notNull())
          .addColumn('last_login_at', 'bigint', (c) => c.notNull())
          .addColumn('last_seen_at', 'bigint', (c) => c.notNull())
          .execute()
        await db.schema.createIndex('login_users_by_last_seen').on('login_users').columns(['last_seen_at']).execute()

        await db.schema
          .createTable('login_sessions')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('user_id', id, (c) => c.notNull().references('login_users.id').onDelete('cascade'))
          .addColumn('browser', 'text', (c) => c.notNull())
          .addColumn('host', 'text', (c) => c.notNull())
          .addColumn('edge_id', 'text', (c) => c.notNull())
          .addColumn('route_id', 'text', (c) => c.notNull())
          .addColumn('identity', 'text', (c) => c.notNull())
          .addColumn('login_user', 'text', (c) => c.notNull())
          .addColumn('kept', 'text', (c) => c.notNull())
          .addColumn('ip', 'text', (c) => c.notNull())
          .addColumn('user_agent', 'text', (c) => c.notNull())
          .addColumn('created_at', 'bigint', (c) => c.notNull())
          .addColumn('checked_at', 'bigint', (c) => c.notNull())
          .addColumn('last_seen_at', 'bigint', (c) => c.notNull())
          .addColumn('expires_at', 'bigint')
          .execute()
        const index = (name: string) => db.schema.createIndex(`login_sessions_${name}`).on('login_sessions')
        await index('by_place').unique().columns(['browser', 'route_id']).execute()
        await index('by_user').columns(['user_id', 'last_seen_at']).execute()
        await index('by_last_seen').columns(['last_seen_at']).execute()
        await index('by_end').columns(['expires_at']).execute()
      },
    },
    '0003_used_answers': {
      async up(db: Kysely<unknown>) {
        await db.schema
          .createTable('used_answers')
          .addColumn('key', 'text', (c) => c.primaryKey())
          .addColumn('expires_at', 'bigint', (c) => c.notNull())
          .execute()
        await db.schema.createIndex('used_answers_by_end').on('used_answers').columns(['expires_at']).execute()
      },
    },
    '0004_online': {
      async up(db: Kysely<unknown>) {
        const id = sql.raw(binaryText)
        // No foreign key refers to a node: a lost one may have a million rows, which are removed a few at a time.
        await db.schema
          .createTable('nodes')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('name', 'text', (c) => c.notNull())
          .addColumn('address', 'text', (c) => c.notNull())
          .addColumn('agent_addresses', 'text', (c) => c.notNull())
          .addColumn('region', 'text', (c) => c.notNull())
          .addColumn('version', 'text', (c) => c.notNull())
          .addColumn('since', 'text', (c) => c.notNull())
          .addColumn('is_leaving', 'integer', (c) => c.notNull())
          .addColumn('sessions', 'integer', (c) => c.notNull())
          .addColumn('expires_at', 'bigint', (c) => c.notNull())
          .execute()

        const index = (name: string, table: string, columns: string[]) =>
          db.schema.createIndex(`${table}_${name}`).on(table).columns(columns)
        await db.schema
          .createTable('online_sessions')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('node_id', id, (c) => c.notNull())
          .addColumn('plane_id', id, (c) => c.notNull())
          .addColumn('credential_id', id, (c) => c.notNull())
          .addColumn('certificate_id', id)
          .addColumn('fields', 'text', (c) => c.notNull())
          .execute()
        await index('by_node', 'online_sessions', ['node_id', 'id']).execute()
        await index('by_credential', 'online_sessions', ['credential_id']).execute()

        await db.schema
          .createTable('online_tunnels')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('node_id', id, (c) => c.notNull())
          .addColumn('plane_id', id, (c) => c.notNull())
          .addColumn('session_id', id, (c) => c.notNull())
          .addColumn('endpoint_id', id)
          .addColumn('fields', 'text', (c) => c.notNull())
          .execute()
        await index('by_node', 'online_tunnels', ['node_id', 'id']).execute()
        await index('by_session', 'online_tunnels', ['session_id', 'id']).execute()
        await index('by_endpoint', 'online_tunnels', ['endpoint_id']).unique().execute()
        await index('by_node_and_endpoint', 'online_tunnels', ['node_id', 'endpoint_id']).execute()

        await db.schema
          .createTable('online_labels')
          .addColumn('pair', id, (c) => c.notNull())
          .addColumn('tunnel_id', id, (c) => c.notNull())
          .addColumn('node_id', id, (c) => c.notNull())
          .addPrimaryKeyConstraint('online_labels_pkey', ['pair', 'tunnel_id'])
          .execute()
        await index('by_node', 'online_labels', ['node_id']).execute()
        await index('by_tunnel', 'online_labels', ['tunnel_id']).execute()

        await db.schema
          .createTable('places')
          .addColumn('place', id, (c) => c.primaryKey())
          .addColumn('owner_id', id, (c) => c.notNull())
          .addColumn('is_pooled', 'integer', (c) => c.notNull())
          .addColumn('digest', 'text', (c) => c.notNull())
          .addColumn('is_unnamed', 'integer', (c) => c.notNull())
          .addColumn('port', 'integer')
          .addColumn('config', 'text', (c) => c.notNull())
          .execute()
        await index('by_port', 'places', ['port', 'place']).execute()

        await db.schema
          .createTable('place_holders')
          .addColumn('place', id, (c) => c.notNull().references('places.place').onDelete('cascade'))
          .addColumn('slot', id, (c) => c.notNull())
          .addColumn('tunnel_id', id, (c) => c.notNull())
          .addColumn('session_id', id, (c) => c.notNull())
          .addColumn('node_id', id, (c) => c.notNull())
          .addColumn('plane_id', id, (c) => c.notNull())
          .addColumn('version', 'text', (c) => c.notNull())
          .addPrimaryKeyConstraint('place_holders_pkey', ['place', 'slot'])
          .execute()
        await index('by_node', 'place_holders', ['node_id']).execute()
        await index('by_tunnel', 'place_holders', ['tunnel_id']).execute()
      },
    },
    '0005_certificates': {
      async up(db: Kysely<unknown>) {
        const id = sql.raw(binaryText)
        await db.schema
          .createTable('acme_accounts')
          .addColumn('directory', id, (c) => c.primaryKey())
          .addColumn('key', 'text', (c) => c.notNull())
          .addColumn('url', 'text', (c) => c.notNull())
          .execute()

        await db.schema
          .createTable('managed_names')
          .addColumn('name', id, (c) => c.primaryKey())
          .addColumn('stage', 'integer', (c) => c.notNull())
          .addColumn('due_at', 'bigint', (c) => c.notNull())
          .addColumn('holder', 'text', (c) => c.notNull())
          .addColumn('held_until', 'bigint', (c) => c.notNull())
          .addColumn('order_key', 'text', (c) => c.notNull())
          .addColumn('state', 'text', (c) => c.notNull())
          .execute()
        await db.schema.createIndex('managed_names_by_due').on('managed_names').columns(['stage', 'due_at']).execute()

        await db.schema
          .createTable('acme_orders')
          .addColumn('id', id, (c) => c.primaryKey())
          .addColumn('begun_at', 'bigint', (c) => c.notNull())
          .execute()
        await db.schema.createIndex('acme_orders_by_time').on('acme_orders').columns(['begun_at']).execute()

        await db.schema
          .createTable('acme_challenges')
          .addColumn('name', id, (c) => c.primaryKey())
          .addColumn('kind', 'text', (c) => c.notNull())
          .addColumn('token', 'text', (c) => c.notNull())
          .addColumn('answer', 'text', (c) => c.notNull())
          .execute()
      },
    },
  }
}
