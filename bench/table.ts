/** Tables for people, in Markdown. */

export function table([head = [], ...lines]: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [row(head), row(head.map(() => '---')), ...lines.map(row)].join('\n')
}

export function grouped(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 0 })
}

/** Whole mebibytes. */
export function mib(bytes: number): string {
  return `${grouped(bytes / 1024 ** 2)} MiB`
}
