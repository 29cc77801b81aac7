/** Splits statements over many rows: databases limit the parameters of one, and building it blocks the event loop. */

/** Most rows named or written by one statement. With ten columns that is far below SQLite's limit of 32,766 parameters. */
const AT_ONCE = 500

/** Calls `work` for a few of `items` at a time, in their order, and returns all that it gave. */
export async function inBatches<Item, Result>(
  items: readonly Item[],
  work: (some: readonly Item[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const all: Result[] = []
  for (let i = 0; i < items.length; i += AT_ONCE) {
    for (const result of await work(items.slice(i, i + AT_ONCE))) all.push(result)
  }
  return all
}

/** The last item of each key, sorted by key: transactions that lock rows in the same order cannot deadlock. */
export function sortedBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Item[] {
  const byKey = new Map(items.map((item) => [keyOf(item), item]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item)
}
