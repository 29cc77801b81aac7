/** English plurals, of the few nouns that we use. */

export function plural(noun: string): string {
  return `${noun.replace(/([^aeiou])y$/, '$1ie').replace(/s$/, 'se')}s`
}
