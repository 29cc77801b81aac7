/** Names in a sentence. */

/** How many are listed; further ones are only counted. */
const MAX_NAMES = 5

export function listNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return [...names.slice(0, MAX_NAMES), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}
