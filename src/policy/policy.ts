/** A policy ready for traffic: its rules compiled once a change, and run in the order in which they were written. */
import type { CelValue } from '@bufbuild/cel'
import type { HeaderList } from '../lib/http/header-list.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import { check } from '../lib/shape/check.ts'
import type { Place } from '../model/place.ts'
import type { Outcome, PolicyTools, Step, Workbench } from './action.ts'
import { isActionName } from './action-names.ts'
import { actions } from './actions.ts'
import { BudgetSpent } from './budget.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import { type NotePart, watchExpression } from './explain-watch.ts'
import { expressionsIn } from './expressions-in.ts'
import type { Action, Rule } from './form.ts'
import type { Moment } from './moment.ts'
import { type Direction, directions, ownLists, type Phase, phaseOf, type Site } from './phases.ts'
import { compileTemplate } from './template.ts'
import type { PolicyResponse, PolicySummary, Verdict } from './traffic.ts'

type IpRules = ReturnType<Workbench['ipRules']>

/** A policy with all that it names written out: plain data. */
export interface PolicySettings {
  readonly place: Place
  readonly inbound: readonly Rule[]
  readonly outbound: readonly Rule[]
  /** The rules of the IP policies that `restrict-ips` names, by their ids. */
  readonly ipPolicies: Readonly<Record<string, IpRules>>
  /** Whether it reads what only a handshake that ends here tells. */
  readonly readsHandshake: boolean
}

interface CompiledRule {
  readonly name: string
  readonly written: Rule
  readonly expressions: readonly Evaluate[]
  readonly steps: readonly Step[]
  readonly guards: boolean
  /** Whether one of its actions finds out who a visitor is. */
  readonly admits: boolean
  /** The actions whose findings its expressions read, of those that visitors are judged by. */
  readonly findings: readonly string[]
}

/** An expression ready to run, and the variables that it reads. */
interface Planned {
  readonly run: Evaluate
  readonly reads: ReadonlySet<string>
}

export interface CompiledPolicy {
  /** Whether there are rules for a phase. */
  readonly has: (phase: Phase) => boolean
  readonly readsPath: boolean
  /** Names of headers that some rule removes, in lower case. */
  readonly removes: (phase: Phase) => readonly string[]
  /** Runs the rules of a phase. Throws when an action fails. */
  readonly run: (phase: Phase, moment: Moment) => Outcome | Promise<Outcome>
  /** What actions that ran for the request tell the upstream. */
  readonly upstream: (outgoing: { readonly headers: HeaderList }, moment: Moment) => void
  /** What actions that ran for the request have to do with its answer, and with its end. */
  readonly response: (response: PolicyResponse, moment: Moment) => void
  readonly done: (summary: PolicySummary, moment: Moment) => void
  readonly release: () => void
}

/** As `compilePolicySteps`, at once. */
export function compilePolicy(
  settings: PolicySettings,
  tools: PolicyTools,
  options: { evaluator: Evaluator; key: string },
): CompiledPolicy {
  const steps = compilePolicySteps(settings, tools, options)
  for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value
}

/** Throws when a policy cannot be served. `key` tells its counters from those of all others. */
export function* compilePolicySteps(
  settings: PolicySettings,
  tools: PolicyTools,
  { evaluator, key }: { evaluator: Evaluator; key: string },
): Generator<void, CompiledPolicy, void> {
  const reads = new Set<string>()
  const rules = new Map<Phase, readonly CompiledRule[]>()
  const failures = new MinuteLog<Readonly<Record<string, unknown>>>((fields, count) =>
    tools.log.warn({ ...fields, count }, 'policy rule failed'),
  )
  const overspent = new MinuteLog<Readonly<Record<string, unknown>>>((fields, count) =>
    tools.log.warn({ ...fields, count }, 'policy budget spent'),
  )
  for (const direction of directions) {
    const phase = phaseOf(settings.place, direction)
    if (!phase) continue
    const site: Site = { place: settings.place, phase, lists: ownLists }
    // One by one, since each may take some milliseconds; the rules then find them done.
    const planned = new Map<string, Planned>()
    for (const text of expressionsIn(settings, direction)) {
      planned.set(text, plan(text, site))
      yield
    }
    const compiled: CompiledRule[] = []
    for (const [i, rule] of settings[direction].entries()) {
      compiled.push(compileRule(rule, { site, planned, ruleKey: `${key} ${direction} ${i}` }))
      yield
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

  function compileRule(
    rule: Rule,
    { site, planned, ruleKey }: { site: Site; planned: ReadonlyMap<string, Planned>; ruleKey: string },
  ): CompiledRule {
    const expression = (text: string): Evaluate => (planned.get(text) ?? plan(text, site)).run
    const steps = rule.actions.map((action, i) => {
      const type = typeOf(action)
      return type.compile(configOf(action), {
        site,
        key: `${ruleKey} ${i}`,
        tools,
        evaluator,
        expression,
        retryExpression: (text) => evaluator.compile(text, { ...site, isRetry: true }, reads),
        template: (text) => compileTemplate(text, expression, evaluator),
        ipRules: (id) => settings.ipPolicies[id] ?? notNamed(id),
      })
    })
    const conditions = rule.expressions.map((text) => planned.get(text) ?? plan(text, site))
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

  function note(moment: Moment, rule: CompiledRule, error: unknown): void {
    if (error instanceof BudgetSpent) {
      if (!moment.budget.tell()) return
      tools.onBudgetSpent()
      overspent.note({ edge: moment.connection.edgeId, rule: rule.name, reason: error.message }, rule.name)
      return
    }
    const reason = error instanceof Error ? error.message : String(error)
    failures.note({ edge: moment.connection.edgeId, rule: rule.name, reason }, `${rule.name} ${reason}`)
  }

  /** Whether a rule applies. `spent`: nothing can be told any more. `unsure`: nothing may pass that it might stop. */
  function applies(rule: CompiledRule, moment: Moment): boolean | 'spent' | 'unsure' {
    let isUnsure = false
    for (const expression of rule.expressions) {
      try {
        if (!isTrue(expression(moment))) return false
      } catch (error) {
        note(moment, rule, error)
        if (error instanceof BudgetSpent) return 'spent'
        // what an expression stumbles over makes it false; visitors must not be able to bring about more than that.
        if (!isClosed(rule, moment)) return false
        isUnsure = true
      }
    }
    return isUnsure ? 'unsure' : true
  }

  /**
   * Whether a rule that stumbles lets nothing pass: one that finds out who a visitor is, and one that goes by what such an
   * action found out before. Otherwise visitors got around a login by leaving out a header.
   */
  function isClosed({ admits, guards, findings }: CompiledRule, { results }: Moment): boolean {
    return admits || (guards && findings.some((name) => results.has(name)))
  }

  function run(phase: Phase, moment: Moment): Outcome | Promise<Outcome> {
    const own = rules.get(phase) ?? []
    tools.watch?.phase(
      phase,
      own.map(({ written }) => written),
    )
    const ended = runRules(own, 0, moment)
    if (!moment.answering || phase !== 'request') return ended
    // A path of a login's own leads nowhere else.
    return ended instanceof Promise ? ended.then((outcome) => outcome ?? failed) : (ended ?? failed)
  }

  /** The rules from number `from` on: at once, up to the first action that has to be waited for. */
  function runRules(own: readonly CompiledRule[], from: number, moment: Moment): Outcome | Promise<Outcome> {
    const { watch } = tools
    for (let i = from; i < own.length; i++) {
      const rule = own[i] as CompiledRule // as long as it goes
      watch?.rule(i)
      const { answering } = moment
      const answer = answering && rule.steps.find(({ login }) => login === answering)
      // Whether the rule applies to the page that the login is for says nothing about the login's own paths.
      const isOn = answer ? true : applies(rule, moment)
      watch?.applies(typeof isOn === 'boolean' ? isOn : undefined)
      // Nothing more can be evaluated, so that a guard further down would not be asked either.
      if (isOn === 'spent') return own.slice(i).some(({ guards }) => guards) ? failed : undefined
      if (isOn === 'unsure') return failed
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
      const ended = runStep(rule, steps[i] as Step, moment) // as long as it goes
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
      note(moment, rule, error)
      return failed
    }
    watch?.acts(rule.steps.indexOf(step), moment)
    try {
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
      failures.close()
      overspent.close()
    },
  }
}

/** What is asked of a rule when the request is for a path of a login's own: that login alone. */
function stepsFor({ steps }: CompiledRule, answer: Step | undefined): readonly Step[] {
  // Other logins are not asked: nobody is let in by this request, and each would take its path for its own.
  return answer ? [answer] : steps.filter(({ login }) => !login)
}

/** */
const failed: Verdict = { refuse: 'POLICY_FAILED' }

/** Names of findings that say who a visitor is, or what another service says of it. */
const judgedBy: readonly string[] = ['http_request', 'jwt_validation', 'oauth', 'oidc', 'openid_connect']

/** Whether `path` is a part of what `read` names, or the other way round. */
function isWithin(path: string, read: string): boolean {
  return path === read || path.startsWith(`${read}.`) || read.startsWith(`${path}.`)
}

/** Variables that hold the path, or some of it. */
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

/** What was stored was checked when it was written; defaults are filled in here, and not there. */
function configOf(action: Action): Readonly<Record<string, unknown>> {
  return check(typeOf(action).config, action.config ?? {})
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
