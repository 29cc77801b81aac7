/**
 * Many rows in one parameter of a statement: an array of arrays, as JSON. With a parameter for every value, building and parsing
 * the statement would be most of the cost of writing a thousand rows.
 */
import { type RawBuilder, sql } from 'kysely'
import type { DialectFacts } from './dialect.ts'

type Value = string | number | null

/** How the columns of a table are filled from arrays. */
interface FilledColumns<Name extends string> {
  readonly names: readonly Name[]
  /** The columns that are not text. */
  readonly numbers?: readonly Name[]
}

/** The rows as a query, for an `insert`. */
export function rowsOf<Name extends string>(
  facts: DialectFacts,
  { names, numbers = [] }: FilledColumns<Name>,
  rows: readonly Readonly<Record<Name, Value>>[],
): RawBuilder<unknown> {
  const values = rows.map((row) => names.map((name) => row[name]))
  const columns = names.map((name, i) => (numbers.includes(name) ? sql`cast(${valueAt(i)} as integer)` : valueAt(i)))
  // Without `where`, SQLite would take the `on` of an upsert for that of a join.
  return sql`select ${sql.join(columns)} from ${facts.eachOf(JSON.stringify(values))} where 1 = 1`
}

/** One value of an array; its index is a literal in the statement. */
function valueAt(index: number): RawBuilder<unknown> {
  return sql`(each.value ->> ${sql.lit(index)})`
}
