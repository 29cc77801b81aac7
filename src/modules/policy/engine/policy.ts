/** Compiles the rules of a policy once for each change, and runs them in the order in which they were written. */
import type { CelValue } from '@bufbuild/cel'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { MinuteLog } from '../../../lib/log/minute-log.ts'
import { check } from '../../../lib/shape/check.ts'
import type { Place } from '../../../model/place.ts'
import { ACTION_STEPS, type Outcome, type PolicyTools, type Step, type Workbench } from './action.ts'
import { actions, isActionName } from './actions.ts'
import { BudgetSpent } from './budget.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import { type NotePart, watchExpression } from './explain-watch.ts'
import { expressionsOf } from './expressions-in.ts'
import { TooMuchToRead } from './http-values.ts'
import type { Moment } from './moment.ts'
import type { Action, Rule } from './policy-form.ts'
import { type Direction, directions, ownLists, type Phase, phaseOf, type Site } from './policy-phases.ts'
import type { PolicyResponse, PolicySummary, Verdict } from './policy-traffic.ts'
import { compileTemplate } from './template.ts'

type IpRules = ReturnType<Workbench['ipRules']>

/** A policy as plain data, with everything that it refers to included. */
export interface PolicySettings {
  readonly place: Place
  readonly inbound: readonly Rule[]
  readonly outbound: readonly Rule[]
  /** The rules of the IP policies that `restrict-ips` names, by their ids. */
  readonly ipPolicies: Readonly<Record<string, IpRules>>
  /** Whether it reads values that are only known when TLS is terminated at this edge. */
  readonly readsHandshake: boolean
}

interface CompiledRule {
  readonly name: string
  readonly written: Rule
  readonly expressions: readonly Evaluate[]
  readonly steps: readonly Step[]
  readonly guards: boolean
  /** Whether one of its actions identifies visitors (`ActionType.admits`). */
  readonly admits: boolean
  /** Those of `judgedBy` whose findings its expressions read. */
  readonly findings: readonly string[]
}

/** An expression ready to run, and the variables that it reads. */
interface Planned {
  readonly run: Evaluate
  readonly reads: ReadonlySet<string>
}

/** The planned expressions of one rule list, by text. A text can mean something else in each of the two maps. */
type PlannedTexts = Readonly<Record<'plain' | 'retry', Map<string, Planned>>>

export interface CompiledPolicy {
  /** Whether there are rules for a phase. */
  readonly has: (phase: Phase) => boolean
  readonly readsPath: boolean
  /** Names of headers that some rule removes, in lower case. */
  readonly removes: (phase: Phase) => readonly string[]
  /** Runs the rules of a phase. Throws when an action fails. */
  readonly run: (phase: Phase, moment: Moment) => Outcome | Promise<Outcome>
  /** Lets the actions that ran for the request change the headers that go upstream. */
  readonly upstream: (outgoing: { readonly headers: HeaderList }, moment: Moment) => void
  /** Lets the actions that ran for the request see its response, and then (`done`) how the exchange ended. */
  readonly response: (response: PolicyResponse, moment: Moment) => void
  readonly done: (summary: PolicySummary, moment: Moment) => void
  readonly release: () => void
}

/**
 * Compiles a policy in small steps, so that other work can run between them; throws when it cannot be served. `key`
 * distinguishes its counters from those of all other policies.
 */
export function* compilePolicySteps(
  settings: PolicySettings,
  tools: PolicyTools,
  { evaluator, key }: { evaluator: Evaluator; key: string },
): Generator<void, CompiledPolicy, void> {
  const reads = new Set<string>()
  const rules = new Map<Phase, readonly CompiledRule[]>()
  const minuteLog = (message: string) =>
    new MinuteLog<object>((fields, count) => tools.log.warn({ ...fields, count }, message))
  const [failures, overspent] = [minuteLog('policy rule failed'), minuteLog('policy budget spent')]
  for (const direction of directions) {
    const phase = phaseOf(settings.place, direction)
    if (!phase) continue
    const site: Site = { place: settings.place, phase, lists: ownLists }
    // One at a time, since each may take some milliseconds. The rules below use what was planned here.
    const planned: PlannedTexts = { plain: new Map(), retry: new Map() }
    for (const { text, isRetry } of expressionsOf(settings, direction)) {
      const known = isRetry ? planned.retry : planned.plain
      if (known.has(text)) continue
      known.set(text, plan(text, isRetry ? { ...site, isRetry } : site))
      yield
    }
    const compiled: CompiledRule[] = []
    for (const [i, rule] of settings[direction].entries()) {
      compiled.push(yield* compileRule(rule, { site, planned, ruleKey: `${key} ${direction} ${i}` }))
    }
    if (compiled.length > 0) rules.set(phase, compiled)
  }
  const all = directions.flatMap((direction) => settings[direction].flatMap((rule) => rule.actions))

  function plan(text: string, site: Site, note?: NotePart): Planned {
    const own = new Set<string>()
    const run = evaluator.compile(text, site, own, { parsed: tools.expression(text), note })
    for (const path of own) reads.add(path)
    return { run, reads: own }
  }

  function* compileRule(
    rule: Rule,
    { site, planned, ruleKey }: { site: Site; planned: PlannedTexts; ruleKey: string },
  ): Generator<void, CompiledRule, void> {
    const expression = (text: string): Evaluate => plannedAs(planned.plain, text).run
    const steps: Step[] = []
    for (const [i, action] of rule.actions.entries()) {
      const step = typeOf(action).compile(configOf(action), {
        site,
        key: `${ruleKey} ${i}`,
        tools,
        evaluator,
        expression,
        retryExpression: (text) => plannedAs(planned.retry, text).run,
        template: (text) => compileTemplate(text, expression, evaluator),
        ipRules: (id) => settings.ipPolicies[id] ?? notNamed(id),
      })
      steps.push(step)
      // After each action, since one with a large pattern takes some milliseconds.
      yield
    }
    const conditions = rule.expressions.map((text) => plannedAs(planned.plain, text))
    const own = conditions.flatMap(({ reads }) => [...reads])
    const expressions = rule.expressions.map((text, i) =>
      watchExpression(text, {
        plain: conditions[i]?.run ?? expression(text),
        compile: (note) => plan(text, site, note).run,
        evaluator,
        watch: tools.watch,
      }),
    )
    return {
      name: rule.name,
      written: rule,
      expressions,
      steps,
      guards: rule.actions.some((action) => typeOf(action).guards === true),
      admits: rule.actions.some((action) => typeOf(action).admits === true),
      findings: judgedBy.filter((name) => own.some((path) => isWithin(`actions.ngrok.${name}`, path))),
    }
  }

  /** Logs why a rule broke, and returns what becomes of the traffic if nothing may pass. */
  function refusal(moment: Moment, rule: CompiledRule, error: unknown): Verdict {
    const kind = error instanceof BudgetSpent ? 'spent' : error instanceof TooMuchToRead ? 'unread' : 'failed'
    const reason = error instanceof Error ? error.message : String(error)
    if (kind !== 'spent') {
      failures.note({ edge: moment.connection.edgeId, rule: rule.name, reason }, `${rule.name} ${reason}`)
    } else if (moment.budget.tell()) {
      tools.onBudgetSpent()
      overspent.note({ edge: moment.connection.edgeId, rule: rule.name, reason }, rule.name)
    }
    return moment.response ? ofAnswer[kind] : ofRequest[kind]
  }

  /** Whether a rule applies, or the refusal when that cannot be known and nothing may pass. */
  function applies(rule: CompiledRule, moment: Moment): boolean | Verdict {
    let unsure: Verdict | undefined
    for (const expression of rule.expressions) {
      try {
        if (!isTrue(expression(moment))) return false
      } catch (error) {
        const refused = refusal(moment, rule, error)
        // D102, D103
        if (error instanceof BudgetSpent || error instanceof TooMuchToRead) return refused
        // an expression that fails is false. Visitors can make one fail, so it must not have worse consequences.
        if (!isClosed(rule, moment)) return false
        unsure = refused
      }
    }
    return unsure ?? true
  }

  /**
   * Whether nothing may pass when an expression of the rule fails. True for a rule that identifies visitors, and for
   * one that judges by the findings of such an action: otherwise visitors could avoid a login by leaving out a header.
   */
  function isClosed({ admits, guards, findings }: CompiledRule, { results }: Moment): boolean {
    return admits || (guards && findings.some((name) => results.has(name)))
  }

  function run(phase: Phase, moment: Moment): Outcome | Promise<Outcome> {
    const own = rules.get(phase) ?? []
    tools.watch?.phase(
      phase,
      own.map(({ written }) => written),
      moment,
    )
    const ended = runRules(own, 0, moment)
    if (!moment.answering || phase !== 'request') return ended
    // A request for a path of a login must never reach the upstream, even if no rule answered it.
    return ended instanceof Promise ? ended.then((outcome) => outcome ?? failed) : (ended ?? failed)
  }

  /** Runs the rules from index `from`: synchronously, up to the first action that returns a promise. */
  function runRules(own: readonly CompiledRule[], from: number, moment: Moment): Outcome | Promise<Outcome> {
    const { watch } = tools
    for (let i = from; i < own.length; i++) {
      const rule = own[i] as CompiledRule // i < own.length
      watch?.rule(i)
      const { answering } = moment
      const answer = answering && rule.steps.find(({ login }) => login === answering)
      // The expressions of the rule are about the pages that the login protects, not about the login's own paths.
      const isOn = answer ? true : applies(rule, moment)
      watch?.applies(typeof isOn === 'boolean' ? isOn : undefined)
      if (typeof isOn === 'object') return isOn
      if (!isOn) continue
      const ended = runSteps(rule, answering ? stepsFor(rule, answer) : rule.steps, 0, moment)
      if (ended instanceof Promise) return ended.then((outcome) => outcome ?? runRules(own, i + 1, moment))
      if (ended) return ended
    }
    return undefined
  }

  function runSteps(
    rule: CompiledRule,
    steps: readonly Step[],
    from: number,
    moment: Moment,
  ): Outcome | Promise<Outcome> {
    for (let i = from; i < steps.length; i++) {
      const ended = runStep(rule, steps[i] as Step, moment) // i < steps.length
      if (ended instanceof Promise) return ended.then((outcome) => outcome ?? runSteps(rule, steps, i + 1, moment))
      if (ended) return ended
    }
    return undefined
  }

  function runStep(rule: CompiledRule, step: Step, moment: Moment): Outcome | Promise<Outcome> {
    const { watch } = tools
    if (step.response || step.done || step.upstream) moment.remember(step)
    const acted = (outcome: Outcome): Outcome => {
      watch?.acted(rule.steps.indexOf(step), moment, outcome)
      return outcome
    }
    const broke = (error: unknown): Outcome => {
      watch?.acted(rule.steps.indexOf(step), moment, error instanceof Error ? error : new Error(String(error)))
      return refusal(moment, rule, error)
    }
    watch?.acts(rule.steps.indexOf(step), moment)
    try {
      moment.budget.charge(step.cost ?? ACTION_STEPS)
      const ended = step.run(moment)
      return ended instanceof Promise ? ended.then(acted).catch(broke) : acted(ended)
    } catch (error) {
      return broke(error)
    }
  }

  return {
    has: (phase) => rules.has(phase),
    readsPath:
      [...reads].some((path) => readingPath.has(path)) ||
      all.some((action) => typeOf(action).readsPath?.(configOf(action)) === true),
    removes: (phase) => removedIn(settings, phase),
    run,
    upstream(outgoing, moment) {
      const { request } = moment
      if (request) for (const step of moment.ran) step.upstream?.(outgoing, request)
    },
    response(response, moment) {
      const { request } = moment
      if (request) for (const step of moment.ran) step.response?.(response, request)
    },
    done(summary, moment) {
      const { request } = moment
      if (request) for (const step of moment.ran) step.done?.(summary, request)
    },
    release() {
      for (const rule of [...rules.values()].flat()) for (const step of rule.steps) step.release?.()
      failures.close()
      overspent.close()
    },
  }
}

/** The steps of a rule for a request to a path of a login: that login, or else all steps that are not logins. */
function stepsFor({ steps }: CompiledRule, answer: Step | undefined): readonly Step[] {
  // Other logins must not run: this request lets nobody in, and each of them would treat the path as its own.
  return answer ? [answer] : steps.filter(({ login }) => !login)
}

/** */
const failed: Verdict = { refuse: 'POLICY_FAILED' }

/** What becomes of traffic whose rules broke (D102, D103): a connection ends, whatever the code. */
const ofRequest = {
  failed,
  spent: { refuse: 'POLICY_BUDGET_SPENT' },
  unread: { refuse: 'HEAD_TOO_LARGE_TO_CHECK' },
} as const
/** The same while the answer is on its way back: the service has done its work, so nobody should ask again. */
const ofAnswer = {
  failed,
  spent: { refuse: 'POLICY_ANSWER_BUDGET_SPENT' },
  unread: { refuse: 'ANSWER_TOO_LARGE_TO_CHECK' },
} as const

/** The actions whose findings say who a visitor is, or what another service says about the request. */
const judgedBy: readonly string[] = ['http_request', 'jwt_validation', 'oauth', 'oidc', 'openid_connect']

/** Whether one of the two paths contains the other. */
function isWithin(path: string, read: string): boolean {
  return path === read || path.startsWith(`${read}.`) || read.startsWith(`${path}.`)
}

/** Variables that hold the path or a part of it. */
const readingPath: ReadonlySet<string> = new Set([
  'req',
  'req.url',
  'req.url.path',
  'req.url.raw',
  'req.url.raw_path',
  'req.url.uri',
])

function isTrue(value: CelValue): boolean {
  if (typeof value === 'boolean') return value
  throw new Error('an expression gives something that is neither true nor false')
}

function typeOf({ type }: Action) {
  if (!isActionName(type)) throw new Error(`there is no action ${type}`)
  return actions[type]
}

/** The settings of an action with defaults filled in. They were checked when the policy was stored. */
function configOf(action: Action): Readonly<Record<string, unknown>> {
  return check(typeOf(action).config, action.config ?? {})
}

/** Never plans: an expression that `expressionsOf` left out would be parsed on the event loop. */
function plannedAs(planned: ReadonlyMap<string, Planned>, text: string): Planned {
  const found = planned.get(text)
  if (!found) throw new Error('an expression of the rule was not planned before')
  return found
}

function notNamed(id: string): never {
  throw new Error(`IP policy ${id} is not known`)
}

function removedIn({ place, ...lists }: PolicySettings, phase: Phase): string[] {
  const direction = directions.find((each: Direction) => phaseOf(place, each) === phase)
  const own = direction ? lists[direction].flatMap((rule) => rule.actions) : []
  return own
    .filter(({ type }) => type === 'remove-headers')
    .flatMap(({ config }) =>
      Array.isArray(config?.headers) ? config.headers.map((name) => String(name).toLowerCase()) : [],
    )
}
