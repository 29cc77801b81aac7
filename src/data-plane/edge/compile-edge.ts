/** Compiles the configuration of an edge into an edge ready for traffic: once per change, with all modules in order. */
import { createHash } from 'node:crypto'
import { cookieRemover } from '../../lib/http/cookies.ts'
import type { BackendPlan, EdgeConfig, ModuleSettings, RouteConfig } from '../../model/edge-config.ts'
import type { Phases, TlsDemands } from '../../modules/phases.ts'
import type { ModuleTools } from '../../modules/tools.ts'
import { modulesInOrder } from '../../modules/traffic.ts'
import { createBackend, type Reach } from './backend.ts'
import type { Edge, Route } from './compiled-edge.ts'
import type { Backend } from './dial.ts'
import { type Reserving, reservedPaths } from './reserved-paths.ts'
import { routeOfEveryPath, routeTable } from './route-table.ts'

/** A compiled edge, with the parts that its next version may reuse. */
export interface CompiledEdge extends Edge {
  readonly routes: readonly Route[]
  readonly parts: Parts
  /** Releases all parts; call it when nothing uses the edge any more. */
  release(): void
}

/** Compiled modules and backends by place, name and settings: unchanged ones keep their state. */
type Parts = ReadonlyMap<string, Part>

// Keys contain the settings, so a part has the type that its key asks for.
type Part = ModulePart | BackendPart

type ModulePart = { readonly phases: Phases }

type BackendPart = { readonly backend: Backend }

export interface Compiling {
  readonly reach: Reach
  readonly tools: Omit<ModuleTools, 'key' | 'owner'>
  /** The version that is served now. */
  readonly previous?: CompiledEdge | undefined
  /** Wraps each module, for a dry run that reports what modules do. */
  readonly watch?: ((module: string, phases: Phases) => Phases) | undefined
}

/** What the next step needs prepared; empty when the step is only a good moment to pause. */
export interface Wanted {
  /** Lists of patterns that a module searches for. */
  readonly patterns?: readonly (readonly string[])[]
  /** Expressions of policies. */
  readonly expressions?: readonly string[]
}

/**
 * Compiles step by step. Yields what the next module needs, so that the caller can prepare it; a failed preparation is
 * thrown into the generator. Never throws itself: an edge that cannot be compiled refuses traffic and says why.
 */
export function* compileEdge(config: EdgeConfig, compiling: Compiling): Generator<Wanted, CompiledEdge, void> {
  const { reach, previous } = compiling
  const parts = new Map<string, Part>()
  const keeping = { ...compiling, edgeId: config.id, ownerId: config.ownerId ?? config.id, parts }
  const backendOf = (partOf: string, settings: ModuleSettings): Backend | undefined => {
    // Only the backend module itself puts a plan under this name.
    const plan = settings.backend as BackendPlan | undefined
    if (!plan) return undefined
    const key = partKey(partOf, 'backend', plan)
    const before = previous?.parts.get(key) as BackendPart | undefined
    const part = before ?? { backend: createBackend(plan, reach) }
    parts.set(key, part)
    return part.backend
  }

  const own = yield* compileModules('edge', config, keeping)
  const compiledRoutes: { matched: RouteConfig; compiled: Compiled; backend: Backend | undefined }[] = []
  for (const matched of config.routes) {
    const backend = backendOf(matched.id, matched.modules)
    compiledRoutes.push({ matched, compiled: yield* compileModules(matched.id, matched, keeping), backend })
  }
  // A cookie hidden by one route would otherwise reach the services of all other routes.
  const hidden = hideCookies(compiledRoutes.flatMap(({ compiled }) => compiled.phases))
  const routes: (readonly [RouteConfig, Route])[] = []
  const reserving: Reserving[] = []
  for (const { matched, compiled, backend } of compiledRoutes) {
    const route = compileRoute(matched.id, [...hidden, ...own.phases], compiled, backend)
    routes.push([matched, route])
    reserving.push({ matched, route, phases: compiled.phases })
  }
  const tls = tlsOf(config, own.phases)
  return {
    id: config.id,
    kind: config.kind,
    isEndpoint: config.id.startsWith('ep_'),
    ownerId: config.ownerId,
    names: config.names,
    ports: config.ports,
    broken: own.broken,
    starting: undefined,
    tls,
    tlsKey: digest({ tls, ofThisEdge: tls?.clientAuthorities ? config.id : '' }),
    accept: own.phases.flatMap(({ accept }) => accept ?? []),
    handshake: own.phases.flatMap(({ handshake }) => handshake ?? []),
    backend: backendOf('edge', config.modules),
    route: routeTable(routes),
    everyPath: routeOfEveryPath(routes),
    reserved: reservedPaths(reserving),
    routes: routes.map(([, route]) => route),
    parts,
    release() {
      for (const part of parts.values()) releasePart(part)
    },
  }
}

/** Releases what `previous` held and `next` did not take over. */
export function releaseReplaced(previous: CompiledEdge, next: CompiledEdge): void {
  for (const [key, part] of previous.parts) if (next.parts.get(key) !== part) releasePart(part)
}

function releasePart(part: Part): void {
  if ('backend' in part) part.backend.release()
  else part.phases.release?.()
}

interface Compiled {
  /** In the order of the registry. */
  readonly phases: readonly Phases[]
  readonly broken: string | undefined
}

/** Phases that hide these cookies from services; none on most edges. */
function hideCookies(phases: readonly Phases[]): readonly Phases[] {
  const names = new Set(phases.flatMap(({ hidesCookies }) => hidesCookies ?? []))
  if (names.size === 0) return []
  const remove = cookieRemover(names)
  return [{ upstream: ({ headers }) => remove(headers) }]
}

/** Modules of the edge come first in the registry, so they run before those of the route. */
function compileRoute(id: string, edge: readonly Phases[], route: Compiled, backend: Backend | undefined): Route {
  const phases = [...edge, ...route.phases]
  const { broken } = route
  return {
    id,
    broken,
    readsPath: phases.some(({ readsPath }) => readsPath),
    accept: route.phases.flatMap(({ accept }) => accept ?? []),
    request: phases.flatMap(({ request }) => request ?? []),
    upstream: phases.flatMap(({ upstream }) => upstream ?? []),
    // responses pass the modules in reverse order.
    response: phases.flatMap(({ response }) => response ?? []).reverse(),
    removedFromRequest: new Set(phases.flatMap(({ removesFromRequest }) => removesFromRequest ?? [])),
    removedFromResponse: new Set(phases.flatMap(({ removesFromResponse }) => removesFromResponse ?? [])),
    done: phases.flatMap(({ done }) => done ?? []),
    bridge: phases.find(({ bridge }) => bridge)?.bridge,
    backend,
  }
}

interface Keeping extends Compiling {
  readonly edgeId: string
  readonly ownerId: string
  /** Gets those that are compiled now, and those of the former version that stay. */
  readonly parts: Map<string, Part>
}

function* compileModules(
  partOf: string,
  { modules: settings, broken: known }: Pick<EdgeConfig, 'modules' | 'broken'>,
  { edgeId, ownerId, parts, previous, tools, watch = (_, compiled) => compiled }: Keeping,
): Generator<Wanted, Compiled, void> {
  const phases: Phases[] = []
  let broken: string | undefined
  const unknown = new Set(Object.keys(settings))
  unknown.delete('backend')
  for (const { name, compile, steps, patterns, expressions } of modulesInOrder) {
    if (!unknown.delete(name)) continue
    const own = settings[name]
    try {
      const key = partKey(partOf, name, own)
      const before = previous?.parts.get(key) as ModulePart | undefined
      // These settings were made by `resolve` of the same module, or from the options of a bind.
      if (!before && (patterns || expressions)) {
        yield { patterns: patterns?.(own) ?? [], expressions: expressions?.(own) ?? [] }
      }
      const keyed = { ...tools, key: `${edgeId} ${key}`, owner: ownerId }
      const compiled = before?.phases ?? (steps ? yield* resting(steps(own, keyed)) : compile(own, keyed))
      const part = before ?? { phases: nameFaults(name, watch(name, compiled)) }
      parts.set(key, part)
      phases.push(part.phases)
    } catch (error) {
      broken ??= `module ${name}: ${error instanceof Error ? error.message : String(error)}`
    }
  }
  for (const name of unknown) broken ??= `module ${name}: there is none of this name`
  yield {}
  return { phases, broken: known ?? broken }
}

/** Pauses after each step, so that other work can run. */
function* resting<T>(steps: Generator<void, T, void>): Generator<Wanted, T, void> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value
    yield {}
  }
}

/** Adds the module's name to errors of connection phases: the caller knows only the edge. */
function nameFaults(name: string, { accept, handshake, ...others }: Phases): Phases {
  return {
    ...others,
    ...(accept && { accept: (peer, reached) => naming(name, () => accept(peer, reached)) }),
    ...(handshake && { handshake: (tls, peer, reached) => naming(name, () => handshake(tls, peer, reached)) }),
  }
}

function naming<T>(name: string, call: () => T): T {
  try {
    return call()
  } catch (cause) {
    throw new Error(`module ${name}`, { cause })
  }
}

/** TLS always ends here on HTTPS edges, and on TLS edges only when a module requires it. */
function tlsOf({ kind }: EdgeConfig, phases: readonly Phases[]): TlsDemands | null {
  const demands = phases.flatMap(({ tls }) => tls ?? [])
  if (kind === 'tcp' || kind === 'http') return null
  if (kind === 'tls' && demands.length === 0) return null
  return Object.assign({}, ...demands) as TlsDemands // each is one
}

function partKey(partOf: string, name: string, settings: unknown): string {
  return `${partOf} ${name} ${digest(settings)}`
}

function digest(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value) ?? '')
    .digest('base64url')
}
