/** The rules that say which room may import which, and the violations in a set of sources. */
import { posix } from 'node:path'
import { findImports, type Import } from './imports.ts'

/** Path from the root of the repository, such as `src/lib/ids.ts`, to text. */
export type Sources = ReadonlyMap<string, string>

const chain = ['lib', 'model', 'policy', 'modules', 'resources', 'control', 'api'] as const
const leftOf = (room: (typeof chain)[number]): string[] => chain.slice(0, chain.indexOf(room))

/** Each room and the other rooms it may import; a single file, such as `server.ts`, is a room too. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  lib: leftOf('lib'),
  model: leftOf('model'),
  policy: leftOf('policy'),
  modules: leftOf('modules'),
  resources: leftOf('resources'),
  planes: ['lib', 'model', 'policy', 'modules'],
  control: [...leftOf('control'), 'planes', 'store'],
  cluster: ['lib', 'model', 'planes', 'control', 'store'],
  acme: ['lib', 'model', 'planes', 'resources', 'control', 'store'],
  api: [...leftOf('api'), 'planes'],
  page: ['lib'],
  store: ['lib', 'model'],
  config: ['lib', 'model'],
  supervisor: ['lib', 'config'],
  wire: ['lib'],
  options: ['lib'],
  tunnel: ['lib', 'model', 'wire'],
  relay: ['lib', 'model', 'wire'],
  ssh: ['lib', 'model', 'options', 'tunnel'],
  edge: ['lib', 'model', 'modules'],
  neighbours: ['lib', 'model', 'modules', 'planes'],
  agent: ['lib', 'wire', 'options'],
  'elsewhere.ts': ['lib', 'model', 'planes', 'relay', 'tunnel', 'edge'],
  'told-elsewhere.ts': ['elsewhere.ts', 'planes', 'tunnel'],
  'plane-numbers.ts': ['lib', 'planes', 'tunnel', 'edge'],
  'drain-plane.ts': ['lib', 'planes', 'neighbours', 'tunnel', 'edge'],
  'data-plane.ts': [
    'drain-plane.ts',
    'elsewhere.ts',
    'told-elsewhere.ts',
    'plane-numbers.ts',
    'lib',
    'model',
    'modules',
    'planes',
    'relay',
    'neighbours',
    'config',
    'tunnel',
    'ssh',
    'edge',
  ],
  'control-plane.ts': ['lib', 'model', 'planes', 'resources', 'control', 'cluster', 'acme', 'store', 'config'],
  'management-api.ts': ['control-plane.ts', ...chain, 'planes', 'store', 'config', 'edge'],
  'control-process.ts': ['control-plane.ts', 'management-api.ts', 'lib', 'planes', 'control', 'config', 'supervisor'],
  'worker-process.ts': ['data-plane.ts', 'lib', 'planes', 'config', 'supervisor'],
  'server.ts': [
    'control-plane.ts',
    'data-plane.ts',
    'management-api.ts',
    'lib',
    'planes',
    'resources',
    'control',
    'store',
    'config',
  ],
  'backup.ts': ['lib', 'control', 'store', 'config'],
  'explain.ts': ['lib', 'model', 'policy', 'modules', 'edge'],
  cli: [
    'lib',
    'model',
    'modules',
    'resources',
    'config',
    'options',
    'agent',
    'supervisor',
    'server.ts',
    'control-process.ts',
    'worker-process.ts',
    'backup.ts',
    'explain.ts',
  ],
  'library.ts': ['lib', 'options', 'agent'],
  'main.ts': ['cli'],
}

/** Where a package may be imported: a folder or a file of `src`. Packages that are not listed may be imported anywhere. */
const packages: Readonly<Record<string, readonly string[]>> = {
  fastify: ['api/'],
  preact: ['page/'],
  '@preact/signals': ['page/'],
  kysely: ['store/'],
  pg: ['store/'],
  pino: ['lib/log/log.ts'],
  commander: ['main.ts', 'cli/'],
  '@bufbuild/cel': ['policy/'],
  re2js: ['lib/patterns/pattern.ts', 'lib/patterns/pattern-program.ts', 'lib/patterns/pattern-replace.ts'],
  'openid-client': ['modules/oidc/'],
  jose: ['modules/oidc/', 'policy/'],
  '@node-saml/node-saml': ['modules/saml/'],
  ssh2: ['ssh/'],
  'acme-client': ['acme/authority.ts'],
  yaml: ['config/', 'agent/', 'policy/'],
}

/** Packages of which only types may be imported, since their code takes long to load, and the file with the rest. */
const typesOnly: Readonly<Record<string, string>> = {
  typebox: 'src/lib/shape/type.ts',
  'node:http': 'src/lib/http/node-http.ts',
}

const registries = ['src/modules/index.ts', 'src/resources/index.ts']

export function roomFaults(sources: Sources): string[] {
  return [...sources.keys()]
    .filter((file) => !Object.hasOwn(rooms, roomOf(file)))
    .map((file) => `${file} is in no known room; known are ${Object.keys(rooms).join(', ')}`)
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
    const allowed = rooms[here] ?? []
    if (here === there || allowed.includes(there)) return []
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
  const started = code(sources).filter(([file]) => !posix.basename(file).startsWith('test-'))
  return started.flatMap(([file, source]) =>
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
  readonly from: string
  readonly rooms: (room: string) => boolean
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
    if (wall.rooms(roomOf(file))) {
      faults.push(way.join(' -> '))
      return
    }
    for (const { specifier } of findImports(sources.get(file) ?? '').imports) {
      const name = packageOf(specifier)
      if (name === undefined) visit(target(file, specifier), way)
      else if (wall.packages?.includes(name)) faults.push([...way, name].join(' -> '))
    }
  }
  for (const [file] of code(sources)) if (roomOf(file) === wall.from) visit(file, [])
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
  return /\.test\.tsx?$/.test(file)
}

function roomOf(file: string): string {
  return file.split('/')[1] ?? ''
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
