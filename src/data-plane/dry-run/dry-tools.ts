/** The tools of modules in a dry run: they reach nothing, and remember nothing. */

import { randomBytes } from 'node:crypto'
import { type Fetch, FetchFault } from '../../lib/http/outbound-fetch.ts'
import { dividedCounters, type LimitPart } from '../../lib/limits/divided-counters.ts'
import { type CountedWindow, SlidingCounters } from '../../lib/limits/sliding-counters.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { compilePatterns } from '../../lib/patterns/pattern-search.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import type { Described } from '../../model/described.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import { MemorySessions } from '../../modules/login/memory-sessions.ts'
import { PolicyExpressions } from '../../modules/policy-expressions.ts'
import { makeRequestKey, type RequestKey } from '../../modules/saml/request-key.ts'
import { doSamlWork, samlDocuments } from '../../modules/saml/saml-documents.ts'
import type { DryRun, ModuleTools } from '../../modules/tools.ts'

interface DryToolsOptions extends Pick<PlaneContext, 'now' | 'region'> {
  readonly asked: Described
  readonly policy: DryRun['policy']
  readonly counters: readonly CountedWindow[]
  /** The node's part of each limit. */
  readonly limitPart: LimitPart
  /** Called when a module wants to fetch an address; `what` says so as part of a sentence. */
  readonly onFetch: (what: string) => void
}

const KEY_BYTES = 32

/** Signs requests that are never sent; slow to create. */
let requestKey: Promise<RequestKey> | undefined

export function dryTools(options: DryToolsOptions): Omit<ModuleTools, 'key' | 'owner'> {
  const { asked, policy, region, now, counters, limitPart, onFetch } = options
  const { login } = asked
  return {
    now,
    region,
    log: createLog({ level: 'silent', destination: { write() {} } }),
    search: compilePatterns,
    fetch: describedFetch(asked, onFetch),
    // A throwaway key: what it seals opens nothing.
    sealer: new Sealer(randomBytes(KEY_BYTES)),
    sessions: new MemorySessions(),
    counters: dividedCounters(SlidingCounters.from(counters), () => limitPart),
    onBudgetSpent() {},
    expression: (text) => new PolicyExpressions().parse(text),
    requestKey: () => (requestKey ??= makeRequestKey(now())),
    // This does not run on the server's event loop.
    samlDocuments: samlDocuments((_sharer, work) => doSamlWork(work)),
    dryRun: { policy, login },
  }
}

/** Answers as described; otherwise reports what would be fetched. */
function describedFetch({ fetches }: Described, onFetch: (what: string) => void): Fetch {
  return async (given, { method = 'GET' } = {}) => {
    const url = URL.parse(String(given))
    const found = fetches.find((each) => URL.parse(each.url)?.href === url?.href)
    if (found) {
      const headers = new Headers()
      for (const [name, values] of Object.entries(found.headers))
        for (const value of values) headers.append(name, value)
      return { status: found.status_code, headers, body: Buffer.from(found.body) }
    }
    // Without the query, which may hold secrets.
    const address = url ? `${url.origin}${url.pathname}` : 'an address that is not a URL'
    onFetch(method === 'GET' ? `would fetch ${address}` : `would send a ${method} to ${address}`)
    throw new FetchFault('unreachable', 'a dry run fetches nothing')
  }
}
