/** The `package.json` of the package, made from that of the repository: what runs is built, and nothing is for developers. */

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly scripts: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** For people with the repository alone. */
const DROPPED: readonly string[] = [
  'devDependencies',
  'allowScripts',
  'overrides',
  // A Node for machines with an older one: 120 MB, and its `node` would come before that of whoever installs us.
  'optionalDependencies',
]

/** Without `optionalDependencies` there is no other Node to fall back on. */
const ENGINES = { node: '>=24' }

const EXPORTS = {
  '.': { types: './dist/library.d.ts', default: './dist/library.js' },
  './package.json': './package.json',
}

export function packedManifest(source: Manifest): Manifest {
  const kept = Object.entries(source).filter(([field]) => !DROPPED.includes(field))
  const { prepack = '', postpack = '' } = source.scripts
  // Of no use once installed. But should packing be interrupted, the next `npm pack` sees this manifest, and must notice.
  const scripts = { prepack, postpack }
  return { ...(Object.fromEntries(kept) as Manifest), engines: ENGINES, exports: EXPORTS, scripts }
}
