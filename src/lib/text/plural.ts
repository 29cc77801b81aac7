/** English plurals for the few nouns that we use. */

export function plural(noun: string): string {
  return `${noun.replace(/([^aeiou])y$/, '$1ie').replace(/s$/, 'se')}s`
}

/** `1 row`, `2 rows`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : plural(noun)}`
}
