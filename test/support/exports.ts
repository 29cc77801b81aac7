/** Finds exports that no other file uses. */

import { posix } from 'node:path'
import { findImports } from './imports.ts'

/** Imported by programs that are not here. */
const PUBLIC = ['src/agent/library.ts']

const EXPORTED = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/gm

/** `users` are all files that may use what `sources` export: sources, tests, benchmarks and scripts. */
export function unusedExports(
  sources: ReadonlyMap<string, string>,
  users: ReadonlyMap<string, string>,
): { file: string; name: string }[] {
  const importers = new Map<string, string[]>()
  for (const [user, text] of users) {
    for (const { specifier } of findImports(text).imports) {
      if (!specifier.startsWith('.')) continue
      const file = posix.join(posix.dirname(user), specifier)
      importers.set(file, [...(importers.get(file) ?? []), text])
    }
  }
  return [...sources]
    .filter(([file]) => !PUBLIC.includes(file))
    .flatMap(([file, text]) =>
      [...text.matchAll(EXPORTED)]
        .map(([, name = '']) => name)
        // Who imports a file and has the name is taken to use it; what is imported by `import()` is not named there.
        .filter((name) => !importers.get(file)?.some((user) => new RegExp(`\\b${name}\\b`).test(user)))
        .map((name) => ({ file, name })),
    )
}
