/** `1 tunnel`, `10,000 tunnels`. */

export function countText(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, 'y').replace(/(ss|x|ch)es$|s$/, '$1') : plural
  return `${count.toLocaleString('en')} ${noun}`
}
