/** Every edge and endpoint that this node serves: found by name or port, and swapped in one assignment when it changes. */
import type { Logger } from '../../lib/log/create-log.ts'
import { type BrokenEdge, MAX_BROKEN_LISTED } from '../../model/broken-edge.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { Listener } from '../../model/look-up.ts'
import { type CompiledEdge, releaseReplaced } from './compile-edge.ts'
import { CompileQueue, type CompileQueueOptions } from './compile-queue.ts'
import type { Edge } from './compiled-edge.ts'
import { LazyEdge } from './lazy-edge.ts'
import { NameIndex } from './name-index.ts'

/** Opens and closes the ports of TCP edges. */
interface Ports {
  /** Undefined when it listens, otherwise why not. Opening a port twice for one owner does nothing more. */
  open(port: number, owner: string): Promise<Error | undefined>
  close(port: number, owner: string): void
}

interface EdgesOptions extends CompileQueueOptions {
  readonly ports: Ports
  /** Whether the server itself is reached by a name, which no wildcard answers for then. */
  readonly isOwnName?: (name: string) => boolean
  readonly log: Logger
}

export class EdgeTable {
  readonly #options: EdgesOptions
  readonly #compiler: CompileQueue
  readonly #entries = new Map<string, LazyEdge>()
  /** Names of HTTPS and TLS edges and endpoints, which share a listener. */
  readonly #secure: NameIndex<LazyEdge>
  /** Names of endpoints on the plain listener. */
  readonly #plain: NameIndex<LazyEdge>
  readonly #byPort = new Map<number, LazyEdge>()
  /** Versions being compiled while the one before is served, by edge. */
  readonly #coming = new Map<string, { readonly config: EdgeConfig; readonly done: Promise<void> }>()
  /** Ports of stored edges that could not be opened, by edge. */
  readonly #unopened = new Map<string, BrokenEdge>()
  /** Other parts of stored edges that refuse traffic, by edge: recorded on change, since there may be many edges. */
  readonly #broken = new Map<string, readonly BrokenEdge[]>()
  #onRemoved: (id: string) => void = () => {}
  #onChanged: (id: string) => void = () => {}

  constructor(options: EdgesOptions) {
    this.#options = options
    this.#compiler = new CompileQueue(options)
    this.#secure = new NameIndex(options.isOwnName)
    this.#plain = new NameIndex(options.isOwnName)
  }

  /** `then` runs when an edge is removed, so that its connections can be ended. */
  whenRemoved(then: (id: string) => void): void {
    this.#onRemoved = then
  }

  /** `then` runs when another version of an edge is served, so that its connections can be judged again. */
  whenChanged(then: (id: string) => void): void {
    this.#onChanged = then
  }

  /** Stored edges that refuse traffic, and why. For an edge not compiled yet, only what is known without compiling. */
  get broken(): BrokenEdge[] {
    const list: BrokenEdge[] = []
    for (const port of this.#unopened.values()) if (list.push(port) >= MAX_BROKEN_LISTED) return list
    for (const parts of this.#broken.values()) if (list.push(...parts) >= MAX_BROKEN_LISTED) return list
    return list
  }

  get size(): number {
    return this.#entries.size
  }

  has(id: string): boolean {
    return this.#entries.has(id)
  }

  /** Ids of stored edges. */
  get storedIds(): string[] {
    return [...this.#entries.keys()].filter(isStored)
  }

  /** An edge as visitors find it; undefined when none has come yet. */
  served(id: string): Edge | undefined {
    return this.#entries.get(id)?.compiled
  }

  /** The edge that serves a name on the TLS listener. */
  find(name: string): Edge | undefined {
    return this.#secure.find(name)?.edge
  }

  /** Whether an edge serves a name; on the plain listener a redirect to TLS counts too. Does not compile the edge. */
  serves(name: string, listener: Listener = 'secure'): boolean {
    return this.#secure.find(name) !== undefined || (listener === 'plain' && this.#plain.find(name) !== undefined)
  }

  /** How many edges are served in their old version while a change is compiled. */
  get coming(): number {
    return this.#coming.size
  }

  /** Those of these edges whose change is still being compiled. */
  comingOf(ids: readonly string[]): string[] {
    return ids.filter((id) => this.#coming.has(id))
  }

  /** Resolves when the latest versions of these edges are served. */
  async settled(ids: readonly string[]): Promise<void> {
    for (const id of ids) for (let next = this.#coming.get(id); next; next = this.#coming.get(id)) await next.done
  }

  /** The endpoint that serves a name on the plain listener. */
  findPlain(name: string): Edge | undefined {
    return this.#plain.find(name)?.edge
  }

  onPort(port: number): Edge | undefined {
    return this.#byPort.get(port)?.edge
  }

  /** The edge or endpoint that holds exactly this name or port. */
  holder(kind: EdgeConfig['kind'], { name, port }: { name?: string; port?: number }): string | undefined {
    if (port !== undefined) return this.#byPort.get(port)?.config.id
    return (kind === 'http' ? this.#plain : this.#secure).get(name ?? '')?.config.id
  }

  /** The edge or endpoint that holds exactly this name of a listener. */
  exact(listener: Listener, name: string): string | undefined {
    return (listener === 'plain' ? this.#plain : this.#secure).get(name)?.config.id
  }

  /** The stored edge whose wildcard covers this name, and that wildcard. */
  wildcardEdge(name: string): { readonly name: string; readonly holderId: string } | undefined {
    const config = this.#secure.find(name)?.config
    const wildcard = config?.names.find((each) => each.startsWith('*.') && name.endsWith(each.slice(1)))
    if (!config || wildcard === undefined || wildcard === name || !isStored(config.id)) return undefined
    return { name: wildcard, holderId: config.id }
  }

  /** The endpoint of an agent that holds exactly this name or port, on either listener. */
  endpointAt(address: { readonly name: string } | { readonly port: number }): string | undefined {
    const entry =
      'port' in address
        ? this.#byPort.get(address.port)
        : (this.#secure.get(address.name) ?? this.#plain.get(address.name))
    return entry && !isStored(entry.config.id) ? entry.config.id : undefined
  }

  /** The name or port of an agent's endpoint, for the metrics; empty when it is not here. */
  endpointAddress(id: string): string {
    const config = this.endpoint(id)
    return config?.names[0] ?? (config?.ports[0] === undefined ? '' : `:${config.ports[0]}`)
  }

  /** The configuration of an agent's endpoint. */
  endpoint(id: string): EdgeConfig | undefined {
    return isStored(id) ? undefined : this.#entries.get(id)?.config
  }

  /**
   * Serves `config` from now on, in place of the edge's former version; returns the error when a port cannot be opened.
   * `isIdle` leaves compiling to the first visitor. An expensive change replaces the former version once it is
   * compiled, and delays no other edge; visitors of a new edge wait for it.
   */
  async apply(config: EdgeConfig, { isIdle = false } = {}): Promise<Error | undefined> {
    const { id } = config
    const served = this.#entries.get(id)?.compiled
    this.#coming.delete(id)
    this.#compiler.load(config)
    if (isIdle && !served) return this.#swap(new LazyEdge(config, () => this.#compile(config)))
    const compiled = this.#compile(config, served)
    if (!served || !(compiled instanceof Promise)) return this.#swap(new LazyEdge(config, compiled))
    const isOvertaken = (): boolean => this.#coming.get(id)?.config !== config
    const swap = (edge: CompiledEdge | Promise<CompiledEdge>): void => {
      this.#coming.delete(id)
      void this.#swap(new LazyEdge(config, edge))
    }
    const done = compiled.then(
      // Another version overtook this one: release the parts that the served version does not share.
      (edge) => (isOvertaken() ? releaseReplaced(edge, served) : swap(edge)),
      // An edge that cannot be compiled refuses all visitors; its previous version is no longer served.
      () => (isOvertaken() ? undefined : swap(compiled)),
    )
    this.#coming.set(id, { config, done })
    return undefined
  }

  /** Like `apply`, with an edge that `compileAhead` has compiled. */
  applyCompiled(config: EdgeConfig, compiled: CompiledEdge): Promise<Error | undefined> {
    return this.#swap(new LazyEdge(config, compiled))
  }

  /** Compiles an edge that is not served yet. */
  async compileAhead(config: EdgeConfig): Promise<CompiledEdge> {
    this.#compiler.load(config)
    return this.#compile(config)
  }

  #swap(entry: LazyEdge): Promise<Error | undefined> {
    const { config } = entry
    const { id } = config
    const before = this.#entries.get(id)
    this.#entries.set(id, entry)
    this.#noteBroken(entry.compiled ?? config)
    const names = this.#namesOf(config)
    for (const name of config.names) names.set(name, entry)
    for (const port of config.ports) this.#byPort.set(port, entry)
    if (before) this.#forget(before, config)
    if (before?.compiled && entry.compiled) releaseReplaced(before.compiled, entry.compiled)
    else before?.drop()
    if (before) this.#onChanged(id)
    return this.#openPorts(config)
  }

  remove(id: string): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    this.#entries.delete(id)
    this.#coming.delete(id)
    this.#unopened.delete(id)
    this.#broken.delete(id)
    this.#forget(entry, undefined)
    entry.drop()
    this.#onRemoved(id)
  }

  async #openPorts({ id, ports }: EdgeConfig): Promise<Error | undefined> {
    let failure: Error | undefined
    for (const port of ports) {
      const fault = await this.#options.ports.open(port, id)
      if (fault) this.#options.log.warn({ edge: id, port, err: fault }, 'port of an edge cannot be opened')
      failure ??= fault
    }
    if (failure && this.#entries.has(id) && isStored(id)) {
      this.#unopened.set(id, { edgeId: id, reason: failure.message })
    } else this.#unopened.delete(id)
    return failure
  }

  /** Removes names and ports that `now` no longer has, unless another edge has taken them since. */
  #forget(before: LazyEdge, now: EdgeConfig | undefined): void {
    const names = this.#namesOf(before.config)
    const { id } = before.config
    for (const name of before.config.names) {
      if (!now?.names.includes(name) && names.get(name)?.config.id === id) names.delete(name)
    }
    for (const port of before.config.ports) {
      if (now?.ports.includes(port)) continue
      if (this.#byPort.get(port)?.config.id === id) this.#byPort.delete(port)
      this.#options.ports.close(port, id)
    }
  }

  #namesOf({ kind }: EdgeConfig): NameIndex<LazyEdge> {
    return kind === 'http' ? this.#plain : this.#secure
  }

  #compile(config: EdgeConfig, previous?: CompiledEdge): CompiledEdge | Promise<CompiledEdge> {
    const compiled = this.#compiler.compile(config, previous)
    if (!(compiled instanceof Promise)) return this.#compiled(config, compiled)
    compiled.catch((error: unknown) =>
      this.#options.log.error({ err: error, edge: config.id }, 'edge cannot be compiled'),
    )
    return compiled.then((edge) => this.#compiled(config, edge))
  }

  /** Reports which parts of an edge are broken. */
  #compiled(config: EdgeConfig, edge: CompiledEdge): CompiledEdge {
    const { log } = this.#options
    if (this.#entries.get(edge.id)?.config === config) this.#noteBroken(edge)
    for (const { edgeId, routeId, reason } of brokenParts(edge)) {
      if (routeId === undefined) log.warn({ edge: edgeId, reason }, 'edge is broken and refuses traffic')
      else log.warn({ edge: edgeId, route: routeId, reason }, 'route is broken and refuses traffic')
    }
    return edge
  }

  #noteBroken(edge: MaybeBroken & { readonly routes: readonly MaybeBroken[] }): void {
    const parts = isStored(edge.id) ? brokenParts(edge) : []
    if (parts.length > 0) this.#broken.set(edge.id, parts)
    else this.#broken.delete(edge.id)
  }
}

/** Whether an edge is stored; an endpoint of an agent is not, and comes and goes with its tunnel. */
function isStored(id: string): boolean {
  return !id.startsWith('ep_')
}

interface MaybeBroken {
  readonly id: string
  readonly broken?: string | undefined
}

function brokenParts({ id, broken, routes }: MaybeBroken & { readonly routes: readonly MaybeBroken[] }): BrokenEdge[] {
  return [
    ...(broken === undefined ? [] : [{ edgeId: id, reason: broken }]),
    ...routes.flatMap((route) =>
      route.broken === undefined ? [] : [{ edgeId: id, routeId: route.id, reason: route.broken }],
    ),
  ]
}
