/** The moment at which a rule runs: the traffic that it sees, and what rules before it left behind. */
import { HeaderList } from '../lib/http/header-list.ts'
import type { LoginGuard, Step } from './action.ts'
import { Budget } from './budget.ts'
import type { PolicyConnection, PolicyRequest, PolicyResponse } from './traffic.ts'

/**
 * What the rules of one request or connection have in common, from its first phase to its last. There is one for each
 * request, so what most policies have no use for is made when it is asked for.
 */
export class Moment {
  readonly connection: PolicyConnection
  readonly request: PolicyRequest | undefined
  readonly now: number
  readonly region: string
  readonly budget = new Budget()
  response: PolicyResponse | undefined
  /** What the `http-request` under way has tried so far. */
  attempts: readonly Attempt[] = []
  /** The login that must answer, when the request is for one of its own paths. */
  answering: LoginGuard | undefined
  /** What `add-headers` and `remove-headers` do to the request, in order: done once more to what goes upstream. */
  readonly changes: ((headers: HeaderList) => void)[] = []
  /** `deny` answers past all rules for responses. */
  isDenied = false
  #ran: Set<Step> | undefined
  #vars: Map<string, unknown> | undefined
  #results: Map<string, ReadonlyMap<string, unknown>> | undefined
  #headers: HeaderList | undefined
  /** How many of the changes `#headers` has. */
  #changed = 0

  constructor(about: {
    readonly connection: PolicyConnection
    readonly request?: PolicyRequest
    readonly now: number
    readonly region: string
  }) {
    this.connection = about.connection
    this.request = about.request
    this.now = about.now
    this.region = about.region
  }

  /** Actions that have something to do later: for the upstream, with the answer, or at its end. */
  get ran(): Iterable<Step> {
    return this.#ran ?? NO_STEPS
  }

  remember(step: Step): void {
    this.#ran ??= new Set()
    this.#ran.add(step)
  }

  /** What `set-vars` set in this phase. */
  get vars(): Map<string, unknown> {
    this.#vars ??= new Map()
    return this.#vars
  }

  /** What the last run of each action found out, by its name with underscores. */
  get results(): Map<string, ReadonlyMap<string, unknown>> {
    this.#results ??= new Map()
    return this.#results
  }

  /** The answer is there: `vars` are those of one phase. */
  answered(response: PolicyResponse): void {
    this.response = response
    this.#vars = undefined
  }

  /** The headers of the request as the rules so far left them. */
  get headers(): HeaderList {
    const sent = this.request?.headers ?? NO_HEADERS
    if (this.changes.length === 0) return sent
    this.#headers ??= sent.clone()
    for (; this.#changed < this.changes.length; this.#changed++) this.changes[this.#changed]?.(this.#headers)
    return this.#headers
  }

  /** Changes the headers of the request, for the rules that follow and for upstream. */
  change(change: (headers: HeaderList) => void): void {
    this.changes.push(change)
  }
}

/** One try of `http-request`, as expressions read it. */
export interface Attempt {
  readonly req: ReadonlyMap<string, unknown>
  readonly res?: ReadonlyMap<string, unknown>
  readonly error?: string
}

const NO_STEPS: readonly Step[] = []
const NO_HEADERS = new HeaderList()
