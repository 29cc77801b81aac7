/** What an action is: when it may run, its settings, and how they are made into what runs. */
import type { Static, TObject, TProperties } from 'typebox'
import { Type } from 'typebox'
import type { HeaderList } from '../lib/http/header-list.ts'
import type { Fetch } from '../lib/http/outbound-fetch.ts'
import type { Counters } from '../lib/limits/sliding-counters.ts'
import type { Logger } from '../lib/log/log.ts'
import type { Evaluate, Evaluator } from './evaluator.ts'
import type { PolicyWatch } from './explain-watch.ts'
import type { OAuthProviderName } from './login-form.ts'
import type { Moment } from './moment.ts'
import type { ParsedExpression } from './parsed.ts'
import type { Phase, Site } from './phases.ts'
import type { Template } from './template.ts'
import type { PolicyRequest, PolicyResponse, PolicySummary, Verdict } from './traffic.ts'

/**
 * `value`: CEL. `template`: text with `${CEL}` in it. `pattern`: RE2, or a template of one. `retry`: CEL that is true or
 * false, and can read how an attempt went.
 */
export type SourceKind = 'value' | 'template' | 'pattern' | 'retry'

/** What running an action comes to: undefined goes on with the next. */
export type Outcome = Verdict | undefined

/** An action of one rule, ready to run. Throws mean broken, and nothing passes. */
export interface Step {
  readonly run: (moment: Moment) => Outcome | Promise<Outcome>
  /** For a request that it ran for: its answer, and how it ended. */
  readonly response?: ((response: PolicyResponse, request: PolicyRequest) => unknown) | undefined
  readonly done?: ((summary: PolicySummary, request: PolicyRequest) => void) | undefined
  /** For one that is let through: what the upstream is told. */
  readonly upstream?: ((outgoing: { readonly headers: HeaderList }, request: PolicyRequest) => void) | undefined
  /** The login that it is. */
  readonly login?: LoginGuard
}

/** A guard that a module of the server has already, with the settings that it was made with. */
export interface Guard {
  readonly readsPath?: boolean | undefined
  readonly request?: ((request: never) => Outcome | Promise<Outcome>) | undefined
  readonly response?: ((response: never, request: never) => unknown) | undefined
  readonly done?: ((summary: never, request: never) => void) | undefined
}

/** A login that a module of the server has already. */
export interface LoginGuard extends Guard {
  /** What is known of the visitor who was let in. */
  readonly found: (request: never) => FoundLogin | undefined
  readonly upstream: (outgoing: { readonly headers: HeaderList }, request: never) => void
}

export interface FoundLogin {
  readonly user: { readonly id: string; readonly name: string; readonly email: string; readonly username: string }
  readonly accessToken: string
  readonly refreshToken: string
  /** Of GitHub alone. */
  readonly organizations: readonly string[]
  readonly teams: readonly string[]
  readonly createdAt: number
  /** When the provider was last asked about the user. */
  readonly checkedAt: number
}

/** What all logins are told, in the units of the program. */
export interface LoginGuardSettings {
  /** Tells the logins of one route apart. */
  readonly authId: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scopes: readonly string[]
  readonly params: Readonly<Record<string, string>>
  readonly passesOptions: boolean
  /** 0 for no limit, as below. */
  readonly idleSeconds: number
  readonly maximumSeconds: number
  readonly refreshSeconds: number
}

/** What actions use of the server around them. */
export interface PolicyTools {
  readonly now: () => number
  /** An expression, parsed before. */
  readonly expression: (text: string) => ParsedExpression
  readonly log: Logger
  readonly region: string
  readonly counters: Counters
  readonly onBudgetSpent: () => void
  readonly fetch: Fetch
  /** Set in a dry run alone. */
  readonly watch?: PolicyWatch | undefined
  /** The rules of an IP policy, as they were when the policy was resolved. */
  readonly guards: {
    basicAuth(settings: { credentials: readonly { username: string; password: string }[]; realm: string }): Guard
    circuitBreaker(settings: {
      trippedSeconds: number
      windowSeconds: number
      buckets: number
      volumeThreshold: number
      errorThreshold: number
    }): Guard
    compression(settings: { algorithms: readonly string[] }): Guard
    webhook(settings: { provider: string; secret: string }): Guard
    oauth(settings: LoginGuardSettings & { readonly provider: OAuthProviderName }): LoginGuard
    oidc(settings: LoginGuardSettings & { readonly issuer: string }): LoginGuard
  }
}

/** What an action is compiled with. */
export interface Workbench {
  readonly site: Site
  /** Tells this action from all others of the server, and stays the same as long as its policy does. */
  readonly key: string
  readonly tools: PolicyTools
  readonly evaluator: Evaluator
  readonly expression: (text: string) => Evaluate
  /** The same for a source of the kind `retry`. */
  readonly retryExpression: (text: string) => Evaluate
  readonly template: (text: string) => Template
  /** The rules of the IP policies that a configuration may name, in CIDR form. */
  readonly ipRules: (policyId: string) => readonly { readonly action: 'allow' | 'deny'; readonly cidr: string }[]
}

export interface ActionType {
  /** Without `connect` it is for HTTP only. */
  readonly phases: readonly Phase[]
  readonly config: TObject
  /** Nothing runs after it in its phase. */
  readonly ends?: boolean
  /** Whether it keeps traffic away: where it cannot be told whether it should, nothing passes. */
  readonly guards?: boolean
  /**
   * Whether it finds out who a visitor is. Where it cannot be told whether it should, nothing passes: visitors must not get
   * around it by what they send.
   */
  readonly admits?: boolean
  /** Whether it decides by the path or changes it (D63). */
  readonly readsPath?: (config: Readonly<Record<string, unknown>>) => boolean
  /** The settings that hold CEL or patterns. */
  readonly sources?: Readonly<Record<string, SourceKind>>
  /** Throws `BadValue` for what the form cannot express; `at` is the path of the settings. */
  readonly refine?: (config: Readonly<Record<string, unknown>>, at: string) => void
  /** For a login: what it is called on its route. */
  readonly loginName?: (config: Readonly<Record<string, unknown>>) => string
  readonly compile: (config: Readonly<Record<string, unknown>>, bench: Workbench) => Step
}

/** Lets the functions of an action see its settings as its own form types them. */
export function defineAction<S extends TObject>(
  action: Omit<ActionType, 'config' | 'refine' | 'compile' | 'readsPath' | 'loginName'> & {
    readonly config: S
    readonly readsPath?: (config: Static<S>) => boolean
    readonly refine?: (config: Static<S>, at: string) => void
    readonly loginName?: (config: Static<S>) => string
    readonly compile: (config: Static<S>, bench: Workbench) => Step
  },
): ActionType {
  // Whoever calls them has just checked the settings against this very form.
  return action as unknown as ActionType
}

export function closed<P extends TProperties>(properties: P): TObject<P> {
  return Type.Object(properties, { additionalProperties: false })
}

/** The step of a guard that a module has already; `enforce` false lets all pass, and only notes what was found. */
export function guardStep(name: string, guard: Guard, enforce: boolean): Step {
  return {
    run(moment) {
      const { request } = moment
      if (!request) throw new Error('there is no request')
      const judged = guard.request?.(request as never) // the same object that the module is given elsewhere
      return judged instanceof Promise ? judged.then((verdict) => note(verdict)) : note(judged)

      function note(verdict: Outcome): Outcome {
        moment.results.set(name.replaceAll('-', '_'), new Map([['passed', verdict === undefined]]))
        return enforce ? verdict : undefined
      }
    },
    response: guard.response as Step['response'],
    done: guard.done as Step['done'],
  }
}
