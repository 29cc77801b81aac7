/** The rules that say which room may import which, and the violations in a set of sources. */
import { posix } from 'node:path'
import { findImports, type Import } from './imports.ts'

/** Path from the root of the repository, such as `src/lib/ids.ts`, to text. */
export type Sources = ReadonlyMap<string, string>

/**
 * The rooms of the house, from the ground up: a room imports only rooms that stand above it in this list. A room is a folder
 * of `src/`, or of one of its houses.
 */
const rooms = [
  ...['lib', 'model', 'modules/policy/engine', 'modules'],
  ...['link/wire', 'link/options', 'link/calls', 'link/planes'],
  ...['control-plane/store', 'control-plane/resources', 'control-plane/records', 'control-plane/directory'],
  ...[
    'control-plane/mirrors',
    'control-plane/traffic',
    'control-plane/acme',
    'control-plane/cluster',
    'control-plane/api',
  ],
  ...['data-plane/requests', 'data-plane/edge', 'data-plane/dry-run', 'data-plane/tunnel', 'data-plane/ssh'],
  ...['data-plane/mirrored', 'data-plane/node-limits', 'data-plane/remote'],
  ...['page', 'agent'],
  ...['server/config', 'server/supervisor', 'server/compose', 'cli', 'main.ts'],
]

/** Folders whose folders are rooms. */
const houses = ['server', 'control-plane', 'data-plane', 'link']

/** Rooms that may import less than what stands above them. */
const only: Readonly<Record<string, readonly string[]>> = {
  'link/wire': ['lib'],
  'link/options': ['lib'],
  page: ['lib'],
  agent: ['lib', 'link/wire', 'link/calls', 'link/options'],
  'server/config': ['lib', 'model'],
  'server/supervisor': ['lib', 'server/config'],
  cli: [
    ...['lib', 'model', 'link/options', 'control-plane/resources', 'agent'],
    ...['server/config', 'server/supervisor', 'server/compose'],
  ],
  'main.ts': ['cli'],
}

/** Only `server/compose` sees both planes. */
function isAcross(here: string, there: string): boolean {
  const [a, b] = [here, there].map((room) => room.slice(0, room.indexOf('/')))
  return (a === 'control-plane' && b === 'data-plane') || (a === 'data-plane' && b === 'control-plane')
}

function mayImport(here: string, there: string): boolean {
  if (here === there) return true
  if (!rooms.includes(there) || rooms.indexOf(there) > rooms.indexOf(here) || isAcross(here, there)) return false
  return only[here]?.includes(there) ?? true
}

/** Where a package may be imported: a folder or a file of `src`. Packages that are not listed may be imported anywhere. */
const packages: Readonly<Record<string, readonly string[]>> = {
  fastify: ['control-plane/api/'],
  preact: ['page/'],
  '@preact/signals': ['page/'],
  kysely: ['control-plane/store/'],
  pg: ['control-plane/store/'],
  pino: ['lib/log/create-log.ts'],
  commander: ['main.ts', 'cli/'],
  '@bufbuild/cel': ['modules/policy/'],
  re2js: ['lib/patterns/pattern.ts', 'lib/patterns/pattern-program.ts', 'lib/patterns/pattern-replace.ts'],
  'openid-client': ['modules/oidc/'],
  jose: ['modules/oidc/', 'modules/policy/'],
  '@node-saml/node-saml': ['modules/saml/'],
  ssh2: ['data-plane/ssh/'],
  'acme-client': ['control-plane/acme/acme-authority.ts'],
  yaml: ['server/config/', 'agent/', 'modules/policy/'],
}

/** Packages of which only types may be imported, since their code takes long to load, and the file with the rest. */
const typesOnly: Readonly<Record<string, string>> = {
  typebox: 'src/lib/shape/type.ts',
  'node:http': 'src/lib/http/node-http.ts',
}

const registries = ['src/modules/forms.ts', 'src/control-plane/resources/index.ts']

export function roomFaults(sources: Sources): string[] {
  return [...sources.keys()]
    .filter((file) => !rooms.includes(roomOf(file)))
    .map((file) => `${file} is in no known room; known are ${rooms.join(', ')}`)
}

export function pathFaults(sources: Sources, exists: (path: string) => boolean): string[] {
  return [...sources].flatMap(([file, source]) => {
    const { imports, hidden } = findImports(source)
    const faults = hidden ? [`${file} computes what it imports; name the file`] : []
    for (const { specifier } of imports.filter(isRelative)) {
      if (!/\.tsx?$/.test(specifier)) faults.push(`${file} imports ${specifier}, which does not end in .ts`)
      else if (!exists(target(file, specifier))) faults.push(`${file} imports ${specifier}, which does not exist`)
    }
    return faults
  })
}

/** Tests may import more than the code beside them, so the rules apply to code only. */
export function arrowFaults(sources: Sources): string[] {
  return edgesOf(sources).flatMap(({ file, to }) => {
    if (!to.startsWith('src/') || isTest(to)) return [`${file} imports ${to}, which is for tests`]
    const [here, there] = [roomOf(file), roomOf(to)]
    if (mayImport(here, there)) return []
    const allowed = rooms.filter((room) => room !== here && mayImport(here, room))
    return [`${file} imports ${to}; ${here} may import ${allowed.join(', ') || 'nothing'}`]
  })
}

export function packageFaults(sources: Sources): string[] {
  return code(sources).flatMap(([file, source]) =>
    findImports(source)
      .imports.map(({ specifier }) => packageOf(specifier))
      .filter((name) => name !== undefined && Object.hasOwn(packages, name))
      .map((name) => ({ name, places: packages[name ?? ''] ?? [] }))
      .filter(({ places }) => !places.some((place) => `src/${place}` === file || inFolder(file, place)))
      .map(({ name, places }) => `${file} imports ${name}; only ${places.join(', ')} may`),
  )
}

export function loadedFaults(sources: Sources): string[] {
  return code(sources).flatMap(([file, source]) =>
    findImports(source)
      .imports.filter(({ kind }) => kind !== 'type')
      .map(({ specifier }) => packageOf(specifier) ?? '')
      .filter((name) => Object.hasOwn(typesOnly, name))
      .map((name) => `${file} loads ${name}; import its types, and the rest from ${typesOnly[name]}`),
  )
}

/** Cycles of static imports. Type imports and an `import()` inside a function do not count. */
export function cycleFaults(sources: Sources): string[] {
  const next = Map.groupBy(
    edgesOf(sources).filter(({ kind }) => kind === 'static'),
    ({ file }) => file,
  )
  const done = new Set<string>()
  const faults: string[] = []
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) faults.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (done.has(file) || path.includes(file)) return
    for (const { to } of next.get(file) ?? []) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of sources.keys()) visit(file, [])
  return faults
}

export function barrelFaults(sources: Sources): string[] {
  return code(sources)
    .filter(([file, source]) => !registries.includes(file) && findImports(source).barrel)
    .map(([file]) => `${file} only re-exports other files; import from those`)
}

export interface Wall {
  readonly from: (room: string) => boolean
  readonly forbids: (room: string, file: string) => boolean
  readonly packages?: readonly string[]
}

/** Violations of a wall: forbidden files that a room reaches through any number of imports of any kind. */
export function wallFaults(sources: Sources, wall: Wall): string[] {
  const faults: string[] = []
  const reached = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (reached.has(file)) return
    reached.add(file)
    const way = [...path, file]
    if (wall.forbids(roomOf(file), file)) {
      faults.push(way.join(' -> '))
      return
    }
    for (const { specifier } of findImports(sources.get(file) ?? '').imports) {
      const name = packageOf(specifier)
      if (name === undefined) visit(target(file, specifier), way)
      else if (wall.packages?.includes(name)) faults.push([...way, name].join(' -> '))
    }
  }
  for (const [file] of code(sources)) if (wall.from(roomOf(file))) visit(file, [])
  return faults
}

function edgesOf(sources: Sources): { file: string; to: string; kind: Import['kind'] }[] {
  return code(sources).flatMap(([file, source]) =>
    findImports(source)
      .imports.filter(isRelative)
      .map(({ specifier, kind }) => ({ file, to: target(file, specifier), kind })),
  )
}

function code(sources: Sources): [string, string][] {
  return [...sources].filter(([file]) => !isTest(file))
}

function isTest(file: string): boolean {
  return /\.test\.tsx?$|\/testing\//.test(file)
}

function roomOf(file: string): string {
  const [, house = '', room = '', inner = ''] = file.split('/')
  if (houses.includes(house)) return `${house}/${room}`
  return `${house}/${room}/${inner}`.startsWith('modules/policy/engine') ? 'modules/policy/engine' : house
}

/** Each pair of rooms of which one imports the other. */
export function arrowsOf(sources: Sources): [from: string, to: string][] {
  const pairs = edgesOf(sources).map(({ file, to }) => `${roomOf(file)} ${roomOf(to)}`)
  return [...new Set(pairs)].map((pair) => pair.split(' ') as [string, string]).filter(([from, to]) => from !== to)
}

export function roomsOf(sources: Sources): string[] {
  return [...new Set(code(sources).map(([file]) => roomOf(file)))]
}

function inFolder(file: string, place: string): boolean {
  return place.endsWith('/') && file.startsWith(`src/${place}`)
}

function target(file: string, specifier: string): string {
  return posix.join(posix.dirname(file), specifier)
}

function isRelative({ specifier }: Import): boolean {
  return packageOf(specifier) === undefined
}

/** `@scope/name` of `@scope/name/deep`; undefined for a path. */
function packageOf(specifier: string): string | undefined {
  if (/^[./]/.test(specifier)) return undefined
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
