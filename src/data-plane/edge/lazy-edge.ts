/** One edge as it is found by name or port: compiled on first use, since most edges are idle. */
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { CompiledEdge } from './compile-edge.ts'
import type { Edge } from './compiled-edge.ts'

type Compiling = CompiledEdge | Promise<CompiledEdge>

export class LazyEdge {
  readonly config: EdgeConfig
  compiled: CompiledEdge | undefined
  readonly #compile: (() => Compiling) | undefined
  #starting: Edge | undefined
  #isDropped = false

  /** A function is called to compile the edge when its first visitor comes. */
  constructor(config: EdgeConfig, compile: Compiling | (() => Compiling)) {
    this.config = config
    if (typeof compile === 'function') this.#compile = compile
    else this.#take(compile)
  }

  /** The edge; while it is being compiled, a placeholder that refuses all visitors or lets them wait. */
  get edge(): Edge {
    return this.compiled ?? this.#starting ?? this.#first()
  }

  /** Releases the edge; call it when the entry can no longer be found. */
  drop(): void {
    this.#isDropped = true
    this.compiled?.release()
  }

  #first(): Edge {
    if (!this.#compile) throw new Error('the entry has neither an edge nor a function that compiles it')
    return this.#take(this.#compile())
  }

  #take(made: Compiling): Edge {
    if (!(made instanceof Promise)) {
      this.compiled = made
      return made
    }
    const starting = made.then((compiled) => {
      this.compiled = compiled
      if (this.#isDropped) compiled.release()
    })
    // The compiler has logged the error; the placeholder stays and refuses all visitors.
    starting.catch(() => {})
    this.#starting = startingEdge(this.config, starting)
    return this.#starting
  }
}

/** Refuses all visitors, whatever modules the edge will have. */
function startingEdge({ id, kind, names, ports, ownerId }: EdgeConfig, starting: Promise<void>): Edge {
  return {
    id,
    kind,
    isEndpoint: id.startsWith('ep_'),
    ownerId,
    names,
    ports,
    broken: 'it is still being compiled',
    starting,
    tls: null,
    tlsKey: '',
    accept: [],
    handshake: [],
    backend: undefined,
    route: () => undefined,
    everyPath: undefined,
    reserved: undefined,
  }
}
