/**
 * Compiles edges: at once when that is cheap, else over many turns of the event loop, with expensive parts on another
 * thread.
 */

import { LOOP_PRICE, patternPrice, totalPrice } from '../../lib/patterns/pattern-price.ts'
import type { PatternProgram } from '../../lib/patterns/pattern-program.ts'
import { compilePatterns, type PatternSearch, searchProgram } from '../../lib/patterns/pattern-search.ts'
import { othersTurn, ownTurn } from '../../lib/threads/others-turn.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import { PolicyExpressions, type PrepareExpressions } from '../../modules/policy-expressions.ts'
import type { ModuleTools } from '../../modules/tools.ts'
import { modulesInOrder } from '../../modules/traffic.ts'
import type { Reach } from './backend.ts'
import { type CompiledEdge, compileEdge, type Wanted } from './compile-edge.ts'

export interface CompileQueueOptions {
  readonly reach: Reach
  readonly tools: Omit<ModuleTools, 'search' | 'expression' | 'key' | 'owner'>
  /** Compiles patterns off the event loop. */
  readonly compilePatterns: (patterns: readonly string[]) => Promise<PatternProgram>
  /** Parses expressions off the event loop. */
  readonly prepareExpressions: PrepareExpressions
}

/** Modules that need libraries of their own. */
const loading = modulesInOrder.filter(({ load }) => load)

/** Price of a route without its patterns, in the unit of `patternPrice`. */
const ROUTE_PRICE = 20

export class CompileQueue {
  readonly #options: CompileQueueOptions

  constructor(options: CompileQueueOptions) {
    this.#options = options
  }

  /** Loads the libraries that `config` needs, before a visitor waits for them. */
  load({ modules: own, routes }: EdgeConfig): void {
    for (const settings of [own, ...routes.map((route) => route.modules)]) {
      for (const { name, load } of loading) if (settings[name] !== undefined) load?.(settings[name])
    }
  }

  /** Compiles `config`, reusing what did not change since `previous`; at once unless it is expensive. */
  compile(config: EdgeConfig, previous: CompiledEdge | undefined): CompiledEdge | Promise<CompiledEdge> {
    return isExpensive(config) ? this.#inTurns(config, previous) : this.#atOnce(config, previous)
  }

  #atOnce(config: EdgeConfig, previous: CompiledEdge | undefined): CompiledEdge {
    const { reach, tools } = this.#options
    const steps = compileEdge(config, {
      reach,
      tools: { ...tools, search: compilePatterns, expression: (text) => new PolicyExpressions().parse(text) },
      previous,
    })
    for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
  }

  async #inTurns(config: EdgeConfig, previous: CompiledEdge | undefined): Promise<CompiledEdge> {
    const { reach, tools } = this.#options
    const programs = new Map<readonly string[], PatternProgram>()
    const search = (patterns: readonly string[]): PatternSearch => {
      const program = programs.get(patterns)
      return program ? searchProgram(program) : compilePatterns(patterns)
    }
    const expressions = new PolicyExpressions()
    const expression = (text: string) => expressions.parse(text)
    const steps = compileEdge(config, { reach, tools: { ...tools, search, expression }, previous })
    await ownTurn()
    const breath = othersTurn()
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value
      const fault = await this.#prepare(step.value, programs, expressions)
      await breath()
      // Patterns that cannot be compiled break their own module and no other.
      step = fault === undefined ? steps.next() : steps.throw(fault)
    }
  }

  async #prepare(
    { patterns: lists = [], expressions: texts = [] }: Wanted,
    programs: Map<readonly string[], PatternProgram>,
    expressions: PolicyExpressions,
  ): Promise<unknown> {
    try {
      await expressions.prepare(texts, this.#options.prepareExpressions)
      for (const patterns of lists) {
        if (totalPrice(patterns) > LIST_PRICE) programs.set(patterns, await this.#options.compilePatterns(patterns))
      }
      return undefined
    } catch (error) {
      return error
    }
  }
}

/** Cheaper lists are compiled on this thread, between two turns. */
const LIST_PRICE = LOOP_PRICE / 4

/** Stops as soon as the answer is known: an edge may have thousands of patterns. */
function isExpensive({ modules: own, routes }: EdgeConfig): boolean {
  let price = routes.length * ROUTE_PRICE
  const lists = modulesInOrder.filter(({ patterns }) => patterns)
  const parsing = modulesInOrder.filter(({ expressions }) => expressions)
  for (const settings of [own, ...routes.map((route) => route.modules)]) {
    // Parsing a single expression may take longer than all the rest.
    if (parsing.some(({ name }) => settings[name] !== undefined)) return true
    for (const { name, patterns } of lists) {
      if (settings[name] === undefined) continue
      for (const list of patterns?.(settings[name]) ?? []) {
        for (const pattern of list) {
          price += patternPrice(pattern)
          if (price > LOOP_PRICE) return true
        }
      }
    }
  }
  return price > LOOP_PRICE
}
