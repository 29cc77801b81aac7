/** The moment at which a rule runs: the traffic that it sees, and what rules before it left behind. */
import { HeaderList } from '../lib/header-list.ts'
import type { LoginGuard } from './action.ts'
import { Budget } from './budget.ts'
import type { PolicyConnection, PolicyRequest, PolicyResponse } from './traffic.ts'

/** What the rules of one request or connection have in common, from its first phase to its last. */
export class Moment {
  readonly connection: PolicyConnection
  readonly request: PolicyRequest | undefined
  readonly now: number
  readonly region: string
  readonly budget = new Budget()
  response: PolicyResponse | undefined
  /** What `set-vars` set in this phase. */
  vars = new Map<string, unknown>()
  /** What the last run of each action found out, by its name with underscores. */
  readonly results = new Map<string, ReadonlyMap<string, unknown>>()
  /** What the `http-request` under way has tried so far. */
  attempts: readonly Attempt[] = []
  /** The login that must answer, when the request is for one of its own paths. */
  answering: LoginGuard | undefined
  /** What `add-headers` and `remove-headers` do to the request, in order: done once more to what goes upstream. */
  readonly changes: ((headers: HeaderList) => void)[] = []
  /** `deny` answers past all rules for responses. */
  isDenied = false
  #headers: HeaderList | undefined

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

  /** The headers of the request as the rules so far left them. */
  get headers(): HeaderList {
    return this.#headers ?? this.request?.headers ?? NO_HEADERS
  }

  /** Changes the headers of the request, for the rules that follow and for upstream. */
  change(change: (headers: HeaderList) => void): void {
    this.#headers ??= this.headers.clone()
    change(this.#headers)
    this.changes.push(change)
  }
}

/** One try of `http-request`, as expressions read it. */
export interface Attempt {
  readonly req: ReadonlyMap<string, unknown>
  readonly res?: ReadonlyMap<string, unknown>
  readonly error?: string
}

const NO_HEADERS = new HeaderList()
