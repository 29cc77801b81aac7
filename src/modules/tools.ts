/** What the server provides to compiled modules. */

import type { PatternSearch } from '../lib/patterns/pattern-search.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import type { LoginSessions, LoginUser } from '../model/logins.ts'
import type { BreakerTwins } from './circuit_breaker/traffic.ts'
import type { PolicyTools } from './policy/engine/action.ts'
import type { PolicyWatch } from './policy/engine/explain-watch.ts'
import type { RequestKey } from './saml/request-key.ts'
import type { SamlDocuments } from './saml/saml-documents.ts'

/** State that connections share is behind ports, so that it may live elsewhere. */
export interface ModuleTools
  extends Pick<PolicyTools, 'expression' | 'now' | 'log' | 'region' | 'fetch' | 'counters' | 'onBudgetSpent'> {
  /** Searches for patterns. Lists that the module declared (`patterns`) are already compiled. */
  readonly search: (patterns: readonly string[]) => PatternSearch
  /** Seals data that visitors carry, such as cookies. */
  readonly sealer: Pick<Sealer, 'seal' | 'open' | 'digestFor'>
  readonly sessions: LoginSessions
  /**
   * Names what is compiled: an edge, a place, a module and its settings. The same at every data plane, and for as long
   * as none of them changes.
   */
  readonly key: string
  /** The owner of the edge; that of an endpoint is the owner of its credential. */
  readonly owner: string
  /** Circuit breakers of the other data planes of this node; absent when there is only one. */
  readonly breakers?: BreakerTwins | undefined
  /** The key that signs requests to identity providers; made on first use. */
  readonly requestKey: () => Promise<RequestKey>
  readonly samlDocuments: SamlDocuments
  /** Set in a dry run, where traffic is only described: nothing is stored or sent. */
  readonly dryRun?: DryRun | undefined
}

export interface DryRun {
  /** Called with what the rules of policies do. */
  readonly policy: PolicyWatch
  /** The user who counts as logged in, at any provider. */
  readonly login: LoginUser | undefined
}
