/**
 * Checks documents that people write: at once when that is cheap, on another thread when it may take long, so that nothing
 * expensive runs on the main thread.
 */
import { LOOP_PRICE } from '../../lib/patterns/pattern-price.ts'
import { ownTurn } from '../../lib/threads/others-turn.ts'
import {
  type LaneOptions,
  WORK_LIMIT_MS,
  type WorkerLane,
  type WorkerPool,
  WorkRefused,
  WorkTooHeavy,
} from '../../lib/threads/worker-pool.ts'
import { refusals } from '../../model/agent-errors.ts'
import { type AgentModules, BindRefusal, type EndpointRequest } from '../../model/endpoint.ts'
import { Refusal } from '../../model/errors.ts'
import { shared } from '../../model/shared.ts'
import { agentModules, bindPrice } from '../../modules/agent-options/options.ts'
import type { Module, ModuleConfig, Where } from '../../modules/module.ts'
import type { ModuleForm } from '../../modules/spellings.ts'
import type { Fields, Resource, Surroundings } from '../resources/resource.ts'
import { type HeavyResult, type HeavyWork, outcomeOf } from './worker-tasks.ts'

/** A module to be checked, as it was written. */
interface WrittenModule {
  readonly module: Module
  /** The spelling in which it was written. */
  readonly form: ModuleForm
  readonly given: ModuleConfig
  readonly where: Where
}

export class Documents {
  readonly #lane: WorkerLane

  constructor(threads: WorkerPool, options?: LaneOptions) {
    this.#lane = threads.lane('document', { waiting: shared.longChecks.most, ...options })
  }

  /**
   * Turns a module that matches its schema into its stored form; throws `BadValue` or `Refusal`. `owner` is charged for the work.
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

  /** The stored fields of a resource whose fields match its schema; throws `BadValue` or `Refusal`. */
  async settle(owner: string, resource: Resource, fields: Fields, around: Surroundings): Promise<Fields> {
    if (!resource.price || resource.price(fields) <= LOOP_PRICE) return resource.settle(fields, around)
    try {
      return await this.#run<Fields>(owner, { kind: 'settle', resource: resource.kind, fields })
    } catch (error) {
      throw asRefusal(error, resource.noun)
    }
  }

  /** The modules that a bind asks for; rejects with `BindRefusal`. */
  async bindModules(owner: string, { proto, opts }: Pick<EndpointRequest, 'proto' | 'opts'>): Promise<AgentModules> {
    if (bindPrice(opts) <= LOOP_PRICE) {
      const modules = agentModules(proto, opts)
      if (modules instanceof BindRefusal) throw modules
      return modules
    }
    try {
      return await this.#run<AgentModules>(owner, { kind: 'bind', proto, opts })
    } catch (error) {
      if (error instanceof WorkTooHeavy) throw refusals.badOption(`The options ${tooHeavy(error)}.`)
      if (error instanceof WorkRefused) throw refusals.checksBusy()
      throw error
    }
  }

  async #run<T>(owner: string, work: HeavyWork, given?: T): Promise<T> {
    // In a turn of its own: a large document was just parsed, and is copied to the other thread next.
    await ownTurn()
    // The thread runs `doHeavyWork`.
    return outcomeOf((await this.#lane.run(owner, work)) as HeavyResult, given)
  }
}

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
