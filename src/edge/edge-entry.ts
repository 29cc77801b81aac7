/** One edge as it is found by name or port: compiled when first used, since most of many stand idle. */
import type { EdgeConfig } from '../model/edge-config.ts'
import type { CompiledEdge } from './compile.ts'
import type { Edge } from './edge.ts'

type Compiling = CompiledEdge | Promise<CompiledEdge>

export class EdgeEntry {
  readonly config: EdgeConfig
  readonly #compile: (() => Compiling) | undefined
  #compiled: CompiledEdge | undefined
  #starting: Edge | undefined
  #isDropped = false

  /** A function is called by the first who asks for the edge. */
  constructor(config: EdgeConfig, compile: Compiling | (() => Compiling)) {
    this.config = config
    if (typeof compile === 'function') this.#compile = compile
    else this.#take(compile)
  }

  /** The edge; while it is still compiled, one that lets nobody through and that visitors may wait for. */
  get edge(): Edge {
    return this.#compiled ?? this.#starting ?? this.#first()
  }

  get compiled(): CompiledEdge | undefined {
    return this.#compiled
  }

  /** Nobody finds it any more. */
  drop(): void {
    this.#isDropped = true
    this.#compiled?.release()
  }

  #first(): Edge {
    if (!this.#compile) throw new Error('an edge was made of nothing')
    return this.#take(this.#compile())
  }

  #take(made: Compiling): Edge {
    if (!(made instanceof Promise)) {
      this.#compiled = made
      return made
    }
    const starting = made.then((compiled) => {
      this.#compiled = compiled
      if (this.#isDropped) compiled.release()
    })
    // Whoever made it says so in the log; it stays one that lets nobody through.
    starting.catch(() => {})
    this.#starting = startingEdge(this.config, starting)
    return this.#starting
  }
}

/** Lets nobody through, whatever guards the edge will have. */
function startingEdge({ id, kind, names, ports }: EdgeConfig, starting: Promise<void>): Edge {
  return {
    id,
    kind,
    isEndpoint: id.startsWith('ep_'),
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
