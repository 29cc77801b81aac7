/** Reads one metric of a server. */

/** The value of the metric `name`, summed over all labels; 0 when there is none. */
export async function metric(metricsUrl: string, name: string): Promise<number> {
  const response = await fetch(new URL('/metrics', metricsUrl))
  const rows = (await response.text())
    .split('\n')
    .filter((row) => row.startsWith(`${name} `) || row.startsWith(`${name}{`))
  return rows.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(' ') + 1)), 0)
}
