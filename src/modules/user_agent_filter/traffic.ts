/** Lets requests in by their `User-Agent`, at a bounded cost for each. */
import type { PatternSearch } from '../../lib/patterns/pattern-search.ts'
import type { Phases, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'

/** RE2 patterns: D35, a request passes when one of `allow` matches or none of `deny` does. */
export interface UserAgentFilterSettings {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

/**
 * Steps of all patterns of a list for one request: about a millisecond. A hundred elaborate patterns take 110,000 for
 * the header of a browser, one takes 1,000. What needs more is refused: a `deny` pattern might have matched.
 */
const MAX_STEPS = 200_000

/** Verdicts to remember, of the headers seen last: real traffic repeats a few. Twice as many at most. */
const REMEMBERED = 256
/** Characters of a header that is worth remembering: longer ones are rare, and each holds memory. */
const MAX_REMEMBERED_LENGTH = 512

export function compileUserAgentFilter(
  { allow, deny }: UserAgentFilterSettings,
  { search }: Pick<ModuleTools, 'search'>,
): Phases {
  const isAllowed = search(allow)
  const isDenied = search(deny)
  const passesEmpty = passes('', isAllowed, () => true)
  let recent = new Map<string, boolean>()
  let older = new Map<string, boolean>()

  const decide = (agent: string): boolean => {
    if (agent === '') return passesEmpty
    if (deny.length === 0) return true
    const known = recent.get(agent) ?? older.get(agent)
    const verdict = known ?? passes(readable(agent), isAllowed, isDenied)
    if (agent.length <= MAX_REMEMBERED_LENGTH && !recent.has(agent)) {
      if (recent.size >= REMEMBERED) {
        older = recent
        recent = new Map()
      }
      recent.set(agent, verdict)
    }
    return verdict
  }

  return {
    request({ headers, found }) {
      const isLetIn = decide(headers.get('user-agent') ?? '')
      found.set('user_agent_filter.decision', isLetIn ? 'allow' : 'deny')
      return isLetIn ? undefined : refused
    },
  }
}

const refused: RequestVerdict = { refuse: 'USER_AGENT_REFUSED' }

/** */
function passes(agent: string, isAllowed: PatternSearch, isDenied: PatternSearch): boolean {
  const allowed = isAllowed(agent, MAX_STEPS)
  if (allowed !== false) return allowed === true
  return isDenied(agent, MAX_STEPS) === false
}

/** Patterns are about text, and a header is held as bytes. */
function readable(agent: string): string {
  return /^[\x20-\x7e]*$/.test(agent) ? agent : Buffer.from(agent, 'latin1').toString('utf8')
}
