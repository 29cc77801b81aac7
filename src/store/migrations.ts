/** The database's history: each migration is written once, in Kysely's schema builder, and runs on both dialects. */
import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { DialectFacts } from './dialect.ts'
import type { Tables } from './tables.ts'

/** Brings the database to the newest schema. Safe to call from several nodes at once: PostgreSQL holds a lock. */
export async function migrate(db: Kysely<Tables>, facts: DialectFacts): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations(facts) } })
  const { error } = await migrator.migrateToLatest()
  const newer = error instanceof Error ? UNKNOWN_MIGRATION.exec(error.message)?.[1] : undefined
  if (newer !== undefined) {
    throw new Error(
      `the database was last used by a newer version of Postern: this one does not know its migration ${newer}; run that version, or restore a backup from before it`,
    )
  }
  if (error) throw new Error('migrate the database', { cause: error })
}

/** How Kysely says that a migration was run which we do not have. */
const UNKNOWN_MIGRATION = /previously executed migration (\S+) is missing/

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
  }
}
