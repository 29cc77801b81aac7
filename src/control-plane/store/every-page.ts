/** Reads a table page by page, newest first, so that not all rows are in memory at once. */
export async function* everyPage<Row extends { readonly id: string }>(
  limit: number,
  read: (page: { readonly limit: number; readonly beforeId?: string }) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let rows: readonly Row[] = []
  do {
    const last = rows.at(-1)
    rows = await read({ limit, ...(last && { beforeId: last.id }) })
    if (rows.length > 0) yield rows
  } while (rows.length === limit)
}
