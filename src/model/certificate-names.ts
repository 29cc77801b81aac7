/** Names in certificates: `*` stands for one label (RFC 6125 §6.4.3), unlike the `*` of an edge. */

/** The wildcard that covers a name; a wildcard covers itself. */
export function wildcardOver(name: string): string {
  return `*${name.slice(name.indexOf('.'))}`
}

/** Whether one of `names`, some of which are wildcards, covers a name. */
export function coveredBy(names: { has(name: string): boolean }): (name: string) => boolean {
  return (name) => names.has(name) || names.has(wildcardOver(name))
}
