/** What a compiled module may use of the server around it. What connections share stands behind ports: it may live elsewhere. */

import type { Fetch } from '../lib/http/outbound-fetch.ts'
import type { Counters } from '../lib/limits/sliding-counters.ts'
import type { Logger } from '../lib/log/log.ts'
import type { PatternSearch } from '../lib/patterns/pattern-search.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import type { PolicyWatch } from '../policy/explain-watch.ts'
import type { ParsedExpression } from '../policy/parsed.ts'
import type { LoginSessions, LoginUser } from './login/sessions.ts'
import type { SamlDocuments } from './saml/documents.ts'
import type { RequestKey } from './saml/request-key.ts'

export interface ModuleTools {
  /** Looks for patterns of users; a list that the module told of is compiled by then. */
  readonly search: (patterns: readonly string[]) => PatternSearch
  /** Expressions of policies; those that the module told of are parsed by then. */
  readonly expression: (text: string) => ParsedExpression
  readonly now: () => number
  readonly log: Logger
  readonly region: string
  /** Asks an address that a configuration names (D53). */
  readonly fetch: Fetch
  /** Seals what travels through the hands of visitors. */
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
  readonly sessions: LoginSessions
  readonly counters: Counters
  /** The key that signs what is asked of identity providers; made when it is first needed. */
  readonly requestKey: () => Promise<RequestKey>
  readonly samlDocuments: SamlDocuments
  /** Counts a request or connection whose expressions cost more than they may. */
  readonly onBudgetSpent: () => void
  /** Set where traffic is only described: what would happen is told, and nothing of it is kept or sent. */
  readonly dryRun?: DryRun | undefined
}

export interface DryRun {
  /** Told of what the rules of policies do. */
  readonly policy: PolicyWatch
  /** Who is taken to be logged in, at whichever provider. */
  readonly login: LoginUser | undefined
}
