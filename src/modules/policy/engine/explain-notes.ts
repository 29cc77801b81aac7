/** Records what the rules of a policy do, in the words of an explanation. */
import { isSecretName } from '../../../lib/log/log-mask.ts'
import type { ExplainedExpression, ExplainedMeter, ExplainedRule } from '../../../model/explanation.ts'
import { callText, headerChanges, verdictText } from '../../../model/explanation-words.ts'
import type { Outcome } from './action.ts'
import { LOGS } from './actions/log.ts'
import { type Budget, MAX_PRICE } from './budget.ts'
import type { PolicyWatch } from './explain-watch.ts'
import type { Moment } from './moment.ts'
import type { Rule } from './policy-form.ts'

/** The most characters of a value that are shown. */
const MAX_TEXT = 1024
/** The most items of a list or map that are shown. */
const MAX_ITEMS = 50

interface Noted {
  readonly written: Rule
  matched: boolean | null
  readonly expressions: ExplainedExpression[]
  readonly actions: (string | null)[]
}

export class PolicyNotes implements PolicyWatch {
  readonly #asked: () => readonly string[]
  #rules: Noted[] = []
  #rule: Noted | undefined
  #parts: { readonly index: number; readonly text: string; readonly value: unknown }[] = []
  #before: Before | undefined
  #budget: Budget | undefined
  /** The number of these requests when the phase began. */
  #askedBefore = 0

  /** `asked` returns the requests to other servers so far, each as a phrase; a dry run does not send them. */
  constructor(asked: () => readonly string[]) {
    this.#asked = asked
  }

  /** The rules of the last phase; they are returned once. */
  take(): readonly ExplainedRule[] {
    const rules = this.#rules
    this.#rules = []
    return rules.map(({ written, matched, expressions, actions }) => ({
      name: written.name,
      matched,
      expressions,
      actions: written.actions.map(({ type }, i) => ({ type, outcome: actions[i] ?? null })),
    }))
  }

  /** What the rules of the request have cost so far; null before they ran. Returned once for each phase. */
  takeMeter(): ExplainedMeter | null {
    const budget = this.#budget
    this.#budget = undefined
    return budget ? { used: Math.ceil(MAX_PRICE - budget.left), total: MAX_PRICE } : null
  }

  phase(_phase: string, rules: readonly Rule[], { budget }: Pick<Moment, 'budget'>): void {
    this.#budget = budget
    this.#askedBefore = this.#asked().length
    this.#rules = rules.map((written) => ({ written, matched: null, expressions: [], actions: [] }))
  }

  rule(index: number): void {
    this.#rule = this.#isKnown ? this.#rules[index] : undefined
    this.#parts = []
  }

  part(index: number, text: string, value: unknown): void {
    this.#parts.push({ index, text, value: showResult(text, value) })
  }

  expression(text: string, result: { readonly value: unknown } | { readonly error: Error }): void {
    const parts = this.#parts.sort((a, b) => a.index - b.index).map(({ text, value }) => ({ text, value }))
    this.#parts = []
    const [value, error] = 'error' in result ? [null, result.error.message] : [showResult(text, result.value), null]
    this.#rule?.expressions.push({ text, value, error, parts })
  }

  applies(isOn: boolean | undefined): void {
    // A rule that could not be decided is shown like one that was not reached.
    if (this.#rule) this.#rule.matched = isOn ?? null
  }

  acts(_index: number, moment: Moment): void {
    this.#before = this.#isKnown ? before(moment, this.#asked().length) : undefined
  }

  acted(index: number, moment: Moment, outcome: Outcome | Error): void {
    const { type = '' } = this.#rule?.written.actions[index] ?? {}
    if (this.#rule && this.#before) this.#rule.actions[index] = this.#words(type, moment, outcome, this.#before)
  }

  /** False once a request to another server would have been sent: what follows would be a guess, and is not shown. */
  get #isKnown(): boolean {
    return this.#asked().length === this.#askedBefore
  }

  #words(type: string, moment: Moment, outcome: Outcome | Error, before: Before): string {
    const asked = this.#asked().slice(before.asked)
    if (asked.length > 0) return callText(type, asked)
    if (outcome instanceof Error) return `fails: ${outcome.message}`
    if (outcome) return verdictText(outcome)
    const changes = changesSince(moment, before)
    return changes.length === 0 ? 'passes' : changes.join(', ')
  }
}

type Before = ReturnType<typeof before>

/** The state that an action may change, from before the action ran. */
function before(moment: Moment, asked: number) {
  const { request, response, headers, vars, results } = moment
  return {
    asked,
    headers: headers.clone(),
    response: response?.headers.clone(),
    host: request?.replacedHost,
    target: request?.replacedTarget,
    vars: new Map(vars),
    results: new Map(results),
    logs: request?.found.get(LOGS),
  }
}

function changesSince({ headers, request, response, vars, results }: Moment, was: Before): string[] {
  const changes = headerChanges(was.headers, headers)
  if (was.response && response) changes.push(...headerChanges(was.response, response.headers))
  const { replacedHost: host, replacedTarget: target } = request ?? {}
  if (target !== undefined && target !== was.target) changes.push(`forwards \`${target}\``)
  if (host !== undefined && host !== was.host) changes.push(`forwards to the host \`${host}\``)
  const set = [...vars].filter(([name, value]) => was.vars.get(name) !== value).map(([name]) => `\`vars.${name}\``)
  if (set.length > 0) changes.push(`sets ${set.join(', ')}`)
  if (request && request.found.get(LOGS) !== was.logs) changes.push('writes to the log')
  for (const [name, found] of results) {
    if (was.results.get(name) !== found && isFailed(found)) changes.push('would stop here, but is not enforced')
  }
  return changes
}

/** Whether a guard's finding says that its check failed. */
function isFailed(found: ReadonlyMap<string, unknown>): boolean {
  return found.get('passed') === false || found.get('limited') === true || found.get('action') === 'deny'
}

const secretSource = /authorization|cookie|token|secret|api[_-]?key|password|signature/i

/** A value as it is shown: shortened, and hidden when the name of its source suggests a secret. */
function showResult(source: string, value: unknown): unknown {
  return limitValue(value, secretSource.test(source))
}

function limitValue(value: unknown, isSecret: boolean): unknown {
  if (typeof value === 'string') {
    if (isSecret && value !== '') return '[secret]'
    return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value
  }
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((each) => limitValue(each, isSecret))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).slice(0, MAX_ITEMS)
  return Object.fromEntries(entries.map(([name, each]) => [name, limitValue(each, isSecret || isSecretName(name))]))
}
