/** A policy ready for traffic: its rules compiled once a change, and run in the order in which they were written. */
import type { CelValue } from '@bufbuild/cel'
import { check } from '../lib/check.ts'
import type { HeaderList } from '../lib/header-list.ts'
import { MinuteLog } from '../lib/minute-log.ts'
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
  const ran = new WeakMap<Moment, Set<Step>>()
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

  function* execute(phase: Phase, moment: Moment): Generator<Promise<Outcome>, Outcome, Outcome> {
    const own = rules.get(phase) ?? []
    const { watch } = tools
    watch?.phase(
      phase,
      own.map(({ written }) => written),
    )
    for (let i = 0; i < own.length; i++) {
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
      for (const step of answer ? [answer] : rule.steps) {
        // Other logins are not asked: nobody is let in by this request, and each would take its path for its own.
        if (answering && step.login && step !== answer) continue
        remember(moment, step)
        let outcome: Outcome
        watch?.acts(rule.steps.indexOf(step), moment)
        try {
          const ended = step.run(moment)
          outcome = ended instanceof Promise ? yield ended : ended
          watch?.acted(rule.steps.indexOf(step), moment, outcome)
        } catch (error) {
          watch?.acted(rule.steps.indexOf(step), moment, error instanceof Error ? error : new Error(String(error)))
          note(moment, rule, error)
          return failed
        }
        if (outcome) return outcome
      }
    }
    return moment.answering && phase === 'request' ? failed : undefined
  }

  function remember(moment: Moment, step: Step): void {
    if (!step.response && !step.done && !step.upstream) return
    const steps = ran.get(moment) ?? new Set()
    steps.add(step)
    ran.set(moment, steps)
  }

  return {
    has: (phase) => rules.has(phase),
    readsPath:
      [...reads].some((path) => readingPath.has(path)) ||
      all.some((action) => typeOf(action).readsPath?.(configOf(action)) === true),
    removes: (phase) => removedIn(settings, phase),
    run: (phase, moment) => drive(execute(phase, moment)),
    upstream(outgoing, moment) {
      const { request } = moment
      if (request) for (const step of ran.get(moment) ?? []) step.upstream?.(outgoing, request)
    },
    response(response, moment) {
      const { request } = moment
      if (request) for (const step of ran.get(moment) ?? []) step.response?.(response, request)
    },
    done(summary, moment) {
      const { request } = moment
      if (request) for (const step of ran.get(moment) ?? []) step.done?.(summary, request)
    },
    release() {
      failures.close()
      overspent.close()
    },
  }
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

/** At once where nothing has to be waited for. */
function drive(run: Generator<Promise<Outcome>, Outcome, Outcome>): Outcome | Promise<Outcome> {
  const first = run.next()
  return first.done ? first.value : wait(run, first.value)
}

async function wait(run: Generator<Promise<Outcome>, Outcome, Outcome>, first: Promise<Outcome>): Promise<Outcome> {
  for (let pending = first; ; ) {
    let step: IteratorResult<Promise<Outcome>, Outcome>
    try {
      step = run.next(await pending)
    } catch (error) {
      step = run.throw(error)
    }
    if (step.done) return step.value
    pending = step.value
  }
}
