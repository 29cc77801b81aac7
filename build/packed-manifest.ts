/** The published `package.json`, derived from the repository's: it runs built code and has nothing for developers. */

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly scripts: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** Fields that matter only in the repository. */
const DROPPED: readonly string[] = [
  'devDependencies',
  'allowScripts',
  'overrides',
  // A Node for machines with an older one: 120 MB, and its `node` would shadow the user's own.
  'optionalDependencies',
]

/** Without `optionalDependencies` there is no other Node to fall back on. */
const ENGINES = { node: '>=24' }

const EXPORTS = {
  '.': { types: './dist/agent/library.d.ts', default: './dist/agent/library.js' },
  './package.json': './package.json',
}

export function packedManifest(source: Manifest): Manifest {
  const kept = Object.entries(source).filter(([field]) => !DROPPED.includes(field))
  const { prepack = '', postpack = '' } = source.scripts
  // Useless once installed, but if packing is interrupted, the next `npm pack` reads this manifest and must notice.
  const scripts = { prepack, postpack }
  return { ...(Object.fromEntries(kept) as Manifest), engines: ENGINES, exports: EXPORTS, scripts }
}
