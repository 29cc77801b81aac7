/**
 * Checks and compiles what people write: at once when that is cheap, on another thread when it may take long. Nothing
 * expensive runs on the main thread.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { LOOP_PRICE } from '../lib/patterns/pattern-price.ts'
import type { PatternProgram } from '../lib/patterns/pattern-program.ts'
import { OffLoop, type OffLoopOptions, WORK_LIMIT_MS, WorkRefused, WorkTooHeavy } from '../lib/threads/off-loop.ts'
import { ownTurn } from '../lib/threads/others-turn.ts'
import { threadFile } from '../lib/threads/thread-file.ts'
import { BindRefusal, type EndpointRequest } from '../model/endpoint.ts'
import { Refusal } from '../model/errors.ts'
import { type AgentModules, agentModules, bindPrice } from '../modules/agent-options/options.ts'
import type { ModuleForm } from '../modules/forms.ts'
import type { Module, ModuleConfig, Where } from '../modules/module.ts'
import type { PreparedExpression } from '../policy/parsed.ts'
import type { Fields, Resource, Surroundings } from '../resources/resource.ts'
import { type HeavyResult, type HeavyWork, outcomeOf } from './heavy-work.ts'

/** A module to be checked, as it was written. */
export interface WrittenModule {
  readonly module: Module
  /** The spelling in which it was written. */
  readonly form: ModuleForm
  readonly given: ModuleConfig
  readonly where: Where
}

/**
 * The owner of work for edges: patterns are compiled one list at a time, whoever wrote them, since they were checked
 * before.
 */
const EDGES = 'edges'

/** How often a list that passed its check may time out. */
const MAX_TRIES = 5
/** Between two tries, in milliseconds. */
const REFUSED_PAUSE_MS = 200

export class Documents {
  readonly #offLoop: OffLoop
  #lastOfEdges: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor({ limitMs }: Pick<OffLoopOptions, 'limitMs'> = {}) {
    const entry = threadFile('heavy-work-thread', import.meta.url)
    this.#offLoop = new OffLoop({ entry, ...(limitMs !== undefined && { limitMs }) })
  }

  /** Threads that were needed so far and still run. */
  get threads(): number {
    return this.#offLoop.threads
  }

  /**
   * From a form that matches its schema to what is stored; throws `BadValue` or `Refusal`. `owner` is whose work it is.
   */
  async readModule(owner: string, { module, form, given, where }: WrittenModule): Promise<ModuleConfig> {
    if (form.price(given) <= LOOP_PRICE) return form.read(given, where)
    const { place, at } = where
    const name = at === '' ? form.name : at.replace(/\.$/, '')
    try {
      return await this.#run(owner, { kind: 'read', module: module.name, form: form.name, place, at, given }, given)
    } catch (error) {
      throw asRefusal(error, name)
    }
  }

  /** What is stored of a resource whose fields match its schema; throws `BadValue` or `Refusal`. */
  async settle(owner: string, resource: Resource, fields: Fields, around: Surroundings): Promise<Fields> {
    if (!resource.price || resource.price(fields) <= LOOP_PRICE) return resource.settle(fields, around)
    try {
      return await this.#run<Fields>(owner, { kind: 'settle', resource: resource.kind, fields })
    } catch (error) {
      throw asRefusal(error, resource.noun)
    }
  }

  /** The modules that a bind asks for. */
  async bindModules(
    owner: () => Promise<string>,
    { proto, opts }: Pick<EndpointRequest, 'proto' | 'opts'>,
  ): Promise<AgentModules | BindRefusal> {
    if (bindPrice(opts) <= LOOP_PRICE) return agentModules(proto, opts)
    try {
      return await this.#run<AgentModules>(await owner(), { kind: 'bind', proto, opts })
    } catch (error) {
      if (error instanceof BindRefusal) return error
      if (error instanceof WorkTooHeavy) return new BindRefusal(BIND_TOO_COSTLY, `The options ${tooHeavy(error)}.`)
      if (error instanceof WorkRefused) return new BindRefusal(BIND_BUSY, `${BUSY} Try again shortly.`)
      throw error
    }
  }

  /**
   * Compiles patterns that were checked before. They queue here, not with the work of callers, which may be refused: an
   * edge whose patterns were refused would let nobody in until its next change.
   */
  compilePatterns(patterns: readonly string[]): Promise<PatternProgram> {
    const compiled = this.#lastOfEdges.then(() => this.#insist<PatternProgram>({ kind: 'patterns', patterns }))
    this.#lastOfEdges = compiled.catch(() => {})
    return compiled
  }

  /** Parses expressions that were checked before, as `compilePatterns` does. */
  prepareExpressions(texts: readonly string[]): Promise<readonly PreparedExpression[]> {
    const prepared = this.#lastOfEdges.then(() =>
      this.#insist<readonly PreparedExpression[]>({ kind: 'expressions', texts }),
    )
    this.#lastOfEdges = prepared.catch(() => {})
    return prepared
  }

  close(): Promise<void> {
    this.#isClosed = true
    return this.#offLoop.close()
  }

  /** Tries again after a refusal, and a few times after a timeout, since the work passed its check before. */
  async #insist<T>(work: HeavyWork): Promise<T> {
    for (let tries = 1; ; ) {
      try {
        return await this.#run<T>(EDGES, work)
      } catch (error) {
        const mayPass =
          error instanceof WorkRefused ? !this.#isClosed : error instanceof WorkTooHeavy && tries++ < MAX_TRIES
        if (!mayPass) throw error
        await pause(REFUSED_PAUSE_MS)
      }
    }
  }

  async #run<T>(owner: string, work: HeavyWork, given?: T): Promise<T> {
    // In a turn of its own: a large document was just parsed, and is now copied to the other thread.
    await ownTurn()
    // The thread runs `doHeavyWork`.
    return outcomeOf((await this.#offLoop.run(owner, work)) as HeavyResult, given as T)
  }
}

/** The vendor's numbers. */
const BIND_TOO_COSTLY = 301
const BIND_BUSY = 802

const BUSY = 'Too many of your documents are still being checked.'
/** How long a caller with too many documents is asked to wait, in seconds. */
const BUSY_SECONDS = Math.ceil(WORK_LIMIT_MS / 1000)

/** Turns work that was refused or too heavy into the API's answer; other errors are passed through. */
export function asRefusal(error: unknown, name: string): unknown {
  if (error instanceof WorkTooHeavy) {
    return new Refusal('TOO_COSTLY', `\`${name}\` ${tooHeavy(error)}`, { field: name, cause: error })
  }
  if (error instanceof WorkRefused) {
    return new Refusal('CHECKS_BUSY', undefined, { headers: { 'retry-after': String(BUSY_SECONDS) }, cause: error })
  }
  return error
}

function tooHeavy({ limit }: WorkTooHeavy): string {
  if (limit === 'time') return `took longer than ${WORK_LIMIT_MS / 1000} s to check; make it smaller or simpler`
  return 'needs too much memory to be checked; make it smaller or simpler'
}
