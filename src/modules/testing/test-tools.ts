/** For tests: the tools of a compiled module, with a fixed clock and no network. */

import { FetchFault } from '../../lib/http/outbound-fetch.ts'
import { SlidingCounters } from '../../lib/limits/sliding-counters.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { compilePatterns } from '../../lib/patterns/pattern-search.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import { MemorySessions } from '../login/memory-sessions.ts'
import { parseHere } from '../policy/engine/parsed.ts'
import { makeRequestKey, type RequestKey } from '../saml/request-key.ts'
import { doSamlWork, samlDocuments } from '../saml/saml-documents.ts'
import type { ModuleTools } from '../tools.ts'

const silent = createLog({ level: 'silent' })

export function testTools(tools: Partial<ModuleTools> = {}): ModuleTools {
  return {
    now: () => 0,
    log: silent,
    region: 'local',
    search: compilePatterns,
    expression: parseHere,
    fetch: () => Promise.reject(new FetchFault('not_allowed', 'the test lets nothing out')),
    sealer: new Sealer(Buffer.alloc(32, 7)),
    sessions: new MemorySessions(),
    counters: new SlidingCounters(),
    key: 'test',
    owner: 'usr_test',
    onBudgetSpent: () => {},
    requestKey: () => (requestKey ??= makeRequestKey(Date.now())),
    samlDocuments: samlDocuments((_sharer, work) => doSamlWork(work)),
    ...tools,
  }
}

/** One for all tests of a file: it takes a while to make. */
let requestKey: Promise<RequestKey> | undefined
