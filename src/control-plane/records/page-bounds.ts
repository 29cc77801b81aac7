/** Where a page of a list ends before its limit. */

/** Most that the items of a page take in the database, in bytes. */
export const PAGE_BYTES = 8 * 1024 * 1024

/** Most references to what is online, and to groups, that a page shows: they take as much. */
export const PAGE_REFS = 50_000

/** An answer that takes more than this in the database, in bytes, is large. */
export const LARGE_BYTES = 1024 * 1024

/** Most of a page that is read at once, in bytes: others want to read meanwhile. */
const PIECE_BYTES = 512 * 1024

/** How many of these make a page, by their sizes: at least one. */
export function fitting(sizes: readonly number[], most: number): number {
  let sum = 0
  for (const [i, size] of sizes.entries()) {
    sum += size
    if (i > 0 && sum > most) return i
  }
  return sizes.length
}

/** How many references an item shows. */
export function refsIn(shown: Readonly<Record<string, unknown>>): number {
  return Object.values(shown).reduce<number>((sum, each) => sum + (Array.isArray(each) ? each.length : 0), 0)
}

/** Reads what takes these bytes in pieces, newest first. `read` is told how many, and before which id. */
export async function inPieces<T extends { readonly id: string }>(
  sizes: readonly number[],
  beforeId: string | undefined,
  read: (piece: { readonly limit: number; readonly beforeId?: string }) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = []
  for (let from = 0; from < sizes.length; ) {
    const last = found.at(-1)?.id ?? beforeId
    const limit = fitting(sizes.slice(from), PIECE_BYTES)
    found.push(...(await read({ limit, ...(last !== undefined && { beforeId: last }) })))
    from += limit
  }
  return found
}
