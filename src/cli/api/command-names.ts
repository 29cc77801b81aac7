/** The names of a resource on the command line: its kind in the plural, and other spellings that people try. */
import { plural } from '../../lib/text/plural.ts'

interface Named {
  readonly kind: string
  readonly path: string
}

/** `tcp_edge` becomes `tcp-edges`. */
export function resourceName({ kind }: Named): string {
  return withDashes(plural(kind))
}

/** Aliases: `tcp_edges`, `tcp-edge`, `edges/tcp`, and `routes` for a resource that belongs to another. */
export function resourceAliases(resource: Named): readonly string[] {
  const words = resource.path.split('/').filter((word) => word !== '' && !word.startsWith('{'))
  const spellings = [plural(resource.kind), resource.kind, words.join('/'), words.join('-')]
  if (resource.path.includes('{')) spellings.push(words.at(-1) ?? '')
  const all = new Set(spellings.flatMap((each) => [each, withDashes(each)]))
  all.delete(resourceName(resource))
  return [...all]
}

/** The parameters of a path: `edge_id` of `/edges/https/{edge_id}/routes`. */
export function pathParameters(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}

export function withDashes(name: string): string {
  return name.replaceAll('_', '-')
}
