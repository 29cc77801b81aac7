/** Defines what an action is: when it may run, its settings, and how they are compiled into a step. */
import type { Static, TObject } from 'typebox'
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Fetch } from '../../../lib/http/outbound-fetch.ts'
import type { Counters } from '../../../lib/limits/sliding-counters.ts'
import type { Logger } from '../../../lib/log/create-log.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import type { PolicyWatch } from './explain-watch.ts'
import type { Moment } from './moment.ts'
import type { LoginGuardSettings, OAuthProviderName } from './openid-form.ts'
import type { ParsedExpression } from './parsed.ts'
import type { Phase, Site } from './policy-phases.ts'
import type { Meter, PolicyRequest, PolicyResponse, PolicySummary, Verdict } from './policy-traffic.ts'
import type { Template } from './template.ts'

/**
 * `value`: CEL. `template`: text with `${CEL}` in it. `pattern`: RE2, or a template of one. `retry`: CEL that is true
 * or false, and can read the result of an attempt.
 */
export type SourceKind = 'value' | 'template' | 'pattern' | 'retry'

/** The result of an action. Undefined: the next action runs. */
export type Outcome = Verdict | undefined

/** An action of one rule, ready to run. When it throws, nothing passes. */
export interface Step {
  readonly run: (moment: Moment) => Outcome | Promise<Outcome>
  /** What it costs each time beyond what it charges itself, in steps: `ACTION_STEPS` when left out. */
  readonly cost?: number
  /** Called with the response to a request that this step ran for; `done` when that exchange has ended. */
  readonly response?: ((response: PolicyResponse, request: PolicyRequest) => unknown) | undefined
  readonly done?: ((summary: PolicySummary, request: PolicyRequest) => void) | undefined
  /** Called for a request that is let through, to change the headers that go upstream. */
  readonly upstream?: ((outgoing: { readonly headers: HeaderList }, request: PolicyRequest) => void) | undefined
  /** Set when the step is a login. */
  readonly login?: LoginGuard
  /** Called when its policy was replaced or removed. */
  readonly release?: (() => void) | undefined
}

/** A guard that a module of the server provides, made for the settings of one action. */
interface Guard {
  readonly request?: ((request: never, meter: Meter) => Outcome | Promise<Outcome>) | undefined
  readonly response?: ((response: never, request: never) => unknown) | undefined
  readonly done?: ((summary: never, request: never) => void) | undefined
  readonly release?: (() => void) | undefined
}

/** A login that a module of the server provides. */
export interface LoginGuard extends Guard {
  /** What is known about the visitor who was let in. */
  readonly found: (request: never) => FoundLogin | undefined
  readonly upstream: (outgoing: { readonly headers: HeaderList }, request: never) => void
}

export interface FoundLogin {
  readonly user: { readonly id: string; readonly name: string; readonly email: string; readonly username: string }
  readonly accessToken: string
  readonly refreshToken: string
  /** Empty unless the provider is GitHub. */
  readonly organizations: readonly string[]
  readonly teams: readonly string[]
  readonly createdAt: number
  /** When the provider was last asked about the user. */
  readonly checkedAt: number
}

/** What the server provides to actions. */
export interface PolicyTools {
  readonly now: () => number
  /** Returns an expression that was parsed earlier, on another thread. */
  readonly expression: (text: string) => ParsedExpression
  readonly log: Logger
  readonly region: string
  readonly counters: Counters
  /** Counts a request or connection whose expressions exceed their budget. */
  readonly onBudgetSpent: () => void
  /** Sends a request to a URL from a configuration (D53). */
  readonly fetch: Fetch
  /** Set only in a dry run. */
  readonly watch?: PolicyWatch | undefined
  /** Makes the guards that actions share with modules of the same job. */
  readonly guards: {
    basicAuth(settings: { credentials: readonly { username: string; password: string }[]; realm: string }): Guard
    /** `key` distinguishes it from the other breakers of the policy. */
    circuitBreaker(
      settings: {
        trippedSeconds: number
        windowSeconds: number
        buckets: number
        volumeThreshold: number
        errorThreshold: number
      },
      key: string,
    ): Guard
    compression(settings: { algorithms: readonly string[] }): Guard
    webhook(settings: { provider: string; secret: string }): Guard
    oauth(settings: LoginGuardSettings & { readonly provider: OAuthProviderName }): LoginGuard
    oidc(settings: LoginGuardSettings & { readonly issuer: string }): LoginGuard
  }
}

/** What an action is compiled with. */
export interface Workbench {
  readonly site: Site
  /** Unique to this action within the server, and the same for as long as its policy does not change. */
  readonly key: string
  readonly tools: PolicyTools
  readonly evaluator: Evaluator
  readonly expression: (text: string) => Evaluate
  /** The same for a source of the kind `retry`. */
  readonly retryExpression: (text: string) => Evaluate
  readonly template: (text: string) => Template
  /** The rules of an IP policy that the settings name. */
  readonly ipRules: (policyId: string) => readonly { readonly action: 'allow' | 'deny'; readonly cidr: string }[]
}

export interface ActionType {
  /** The phases in which it may run; without `connect` it is for HTTP only. */
  readonly phases: readonly Phase[]
  readonly config: TObject
  /** Whether it ends its phase, so that nothing runs after it. */
  readonly ends?: boolean
  /** Whether it can turn traffic away. When its rule judges by what a login or a call found and fails, nothing passes. */
  readonly guards?: boolean
  /**
   * Whether it identifies visitors. When an expression of its rule fails, nothing passes: a visitor must not be able to
   * avoid the check by sending something that makes the expression fail.
   */
  readonly admits?: boolean
  /** Whether it decides by the path or changes it (D63). */
  readonly readsPath?: (config: Readonly<Record<string, unknown>>) => boolean
  /** The settings that hold CEL or patterns. */
  readonly sources?: Readonly<Record<string, SourceKind>>
  /** Throws `BadValue` for what the form cannot express; `at` is the path of the settings. */
  readonly refine?: (config: Readonly<Record<string, unknown>>, at: string) => void
  /** For a login: the name that distinguishes it from the other logins of its route. */
  readonly loginName?: (config: Readonly<Record<string, unknown>>) => string
  readonly compile: (config: Readonly<Record<string, unknown>>, bench: Workbench) => Step
}

/** Types the settings that the functions of an action get by the action's own form. */
export function defineAction<S extends TObject>(
  action: Omit<ActionType, 'config' | 'refine' | 'compile' | 'readsPath' | 'loginName'> & {
    readonly config: S
    readonly readsPath?: (config: Static<S>) => boolean
    readonly refine?: (config: Static<S>, at: string) => void
    readonly loginName?: (config: Static<S>) => string
    readonly compile: (config: Static<S>, bench: Workbench) => Step
  },
): ActionType {
  // Callers check the settings against `config` before they call these functions.
  return action as unknown as ActionType
}

/** The price of an action. */
export const ACTION_STEPS = 1000

/** The price of asking a guard: some look-ups and a digest. */
export const GUARD_STEPS = 10_000

/**
 * The step for a guard of a module. With `enforce` false everything passes, and the step only notes what it found. Guards with
 * the same `key` judge alike, and only the first is asked.
 */
export function guardStep(name: string, guard: Guard, enforce: boolean, key?: string): Step {
  // The same object that the module gets elsewhere.
  const judge = ({ ownRequest, budget }: Moment) => guard.request?.(ownRequest as never, budget)
  return {
    cost: GUARD_STEPS,
    run(moment) {
      const judged = key === undefined ? judge(moment) : moment.once(key, judge)
      return judged instanceof Promise ? judged.then((verdict) => note(verdict)) : note(judged)

      function note(verdict: Outcome): Outcome {
        moment.results.set(name.replaceAll('-', '_'), new Map([['passed', verdict === undefined]]))
        return enforce ? verdict : undefined
      }
    },
    response: guard.response as Step['response'],
    done: guard.done as Step['done'],
    release: guard.release,
  }
}
