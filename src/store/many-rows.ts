/**
 * Many rows in one parameter of a statement: an array of arrays, as JSON. With a parameter for every value, most of what it
 * costs to write a thousand rows is to build the statement and to have it parsed.
 */
import { type RawBuilder, sql } from 'kysely'
import type { DialectFacts } from './dialect.ts'

type Value = string | number | null

/** How the columns of a table are filled from arrays. */
export interface FilledColumns<Name extends string> {
  readonly names: readonly Name[]
  /** Those that are no text. */
  readonly numbers?: readonly Name[]
}

/** The rows, as a query that a table can be filled with. */
export function rowsOf<Name extends string>(
  facts: DialectFacts,
  { names, numbers = [] }: FilledColumns<Name>,
  rows: readonly Readonly<Record<Name, Value>>[],
): RawBuilder<unknown> {
  const values = rows.map((row) => names.map((name) => row[name]))
  const columns = names.map((name, i) => (numbers.includes(name) ? sql`cast(${valueAt(i)} as integer)` : valueAt(i)))
  // SQLite takes the `on` of an upsert for that of a join without a condition.
  return sql`select ${sql.join(columns)} from ${facts.eachOf(JSON.stringify(values))} where 1 = 1`
}

/** One value of an array; its index is a part of the statement. */
function valueAt(index: number): RawBuilder<unknown> {
  return sql`(each.value ->> ${sql.lit(index)})`
}
