/** What a rule can see when it runs: the traffic, and the results of earlier rules. */
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { LoginGuard, Outcome, Step } from './action.ts'
import { Budget } from './budget.ts'
import type { PolicyConnection, PolicyRequest, PolicyResponse } from './policy-traffic.ts'

/**
 * Shared by all rules of one request or connection, from its first phase to its last. There is one for each request, so
 * rarely needed parts are made on first use.
 */
export class Moment {
  readonly connection: PolicyConnection
  readonly request: PolicyRequest | undefined
  readonly now: number
  readonly region: string
  readonly budget = new Budget()
  response: PolicyResponse | undefined
  /** The attempts so far of the `http-request` that is running. */
  attempts: readonly Attempt[] = []
  /** Set when the request is for a path of a login, such as its callback: the login that must answer. */
  answering: LoginGuard | undefined
  /** The changes of `add-headers` and `remove-headers` to the request, in order. They are repeated on what goes upstream. */
  readonly changes: ((headers: HeaderList) => void)[] = []
  /** the rules for responses do not run for the answer of `deny`. */
  isDenied = false
  #ran: Set<Step> | undefined
  #vars: Map<string, unknown> | undefined
  #results: Map<string, ReadonlyMap<string, unknown>> | undefined
  #headers: HeaderList | undefined
  /** How many of the changes were already applied to `#headers`. */
  #changed = 0
  #judged: Map<string, Outcome | Promise<Outcome>> | undefined

  constructor({ connection, request, now, region }: MomentParts) {
    this.connection = connection
    this.request = request
    this.now = now
    this.region = region
  }

  /** The request; throws where there are connections only, which no checked rule does. */
  get ownRequest(): PolicyRequest {
    if (!this.request) throw new Error('there is no request')
    return this.request
  }

  /** The steps that ran and have more to do: before the request goes upstream, with the response, or at the end. */
  get ran(): Iterable<Step> {
    return this.#ran ?? NO_STEPS
  }

  remember(step: Step): void {
    this.#ran ??= new Set()
    this.#ran.add(step)
  }

  /** The verdict of the first of the guards that judge alike, by their key. */
  once(key: string, judge: (moment: Moment) => Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
    this.#judged ??= new Map()
    if (!this.#judged.has(key)) this.#judged.set(key, judge(this))
    return this.#judged.get(key)
  }

  /** What `set-vars` set in this phase. */
  get vars(): Map<string, unknown> {
    this.#vars ??= new Map()
    return this.#vars
  }

  /** The findings of the last run of each action, by its name with underscores. */
  get results(): Map<string, ReadonlyMap<string, unknown>> {
    this.#results ??= new Map()
    return this.#results
  }

  /** The response has arrived. Forgets `vars`, which last for one phase. */
  answered(response: PolicyResponse): void {
    this.response = response
    this.#vars = undefined
  }

  /** The headers of the request with the changes of the rules so far. */
  get headers(): HeaderList {
    const sent = this.request?.headers ?? NO_HEADERS
    if (this.changes.length === 0) return sent
    this.#headers ??= sent.clone()
    for (; this.#changed < this.changes.length; this.#changed++) this.changes[this.#changed]?.(this.#headers)
    return this.#headers
  }

  /** Changes the headers of the request, for later rules and for the upstream. */
  change(change: (headers: HeaderList) => void): void {
    this.changes.push(change)
  }
}

interface MomentParts extends Pick<Moment, 'connection' | 'now' | 'region'>, Partial<Pick<Moment, 'request'>> {}

/** One try of `http-request`, as expressions read it. */
export interface Attempt {
  readonly req: ReadonlyMap<string, unknown>
  readonly res?: ReadonlyMap<string, unknown>
  readonly error?: string
}

const NO_STEPS: readonly Step[] = []
const NO_HEADERS = new HeaderList()
