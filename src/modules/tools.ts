/** What the server provides to compiled modules. State that connections share is behind ports, so it may live elsewhere. */

import type { Fetch } from '../lib/http/outbound-fetch.ts'
import type { Counters } from '../lib/limits/sliding-counters.ts'
import type { Logger } from '../lib/log/create-log.ts'
import type { PatternSearch } from '../lib/patterns/pattern-search.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import type { LoginSessions, LoginUser } from '../model/logins.ts'
import type { BreakerTwins } from './circuit_breaker/traffic.ts'
import type { PolicyWatch } from './policy/engine/explain-watch.ts'
import type { ParsedExpression } from './policy/engine/parsed.ts'
import type { RequestKey } from './saml/request-key.ts'
import type { SamlDocuments } from './saml/saml-documents.ts'

export interface ModuleTools {
  /** Searches for patterns. Lists that the module declared (`patterns`) are already compiled. */
  readonly search: (patterns: readonly string[]) => PatternSearch
  /** Parses an expression. Those that the module declared (`expressions`) are already parsed. */
  readonly expression: (text: string) => ParsedExpression
  readonly now: () => number
  readonly log: Logger
  readonly region: string
  /** Sends a request to a URL from a configuration (D53). */
  readonly fetch: Fetch
  /** Seals data that visitors carry, such as cookies. */
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly sessions: LoginSessions
  readonly counters: Counters
  /**
   * Names what is compiled: an edge, a place, a module and its settings. The same at every data plane, and for as long
   * as none of them changes.
   */
  readonly key: string
  /** Circuit breakers of the other data planes of this node; absent when there is only one. */
  readonly breakers?: BreakerTwins | undefined
  /** The key that signs requests to identity providers; made on first use. */
  readonly requestKey: () => Promise<RequestKey>
  readonly samlDocuments: SamlDocuments
  /** Counts a request or connection whose expressions exceed their budget. */
  readonly onBudgetSpent: () => void
  /** Set in a dry run, where traffic is only described: nothing is stored or sent. */
  readonly dryRun?: DryRun | undefined
}

export interface DryRun {
  /** Called with what the rules of policies do. */
  readonly policy: PolicyWatch
  /** The user who counts as logged in, at any provider. */
  readonly login: LoginUser | undefined
}
