/**
 * Lets requests in by their `User-Agent`, at a bounded cost for each.
 *
 * @example
 * const phases = compileUserAgentFilter({ allow: ['^Googlebot-Image'], deny: ['(?i)bot'] }, tools)
 * const decide = (agent) => phases.request(request({ headers: { 'user-agent': agent } }))
 * decide('Mozilla/5.0') // undefined
 * decide('SomeBot/1.0') // { refuse: 'USER_AGENT_REFUSED' }
 * decide('Googlebot-Image/1.0') // undefined
 */
import type { PatternSearch } from '../../lib/patterns/pattern-search.ts'
import type { Phases, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import type { UserAgentFilterSettings } from './form.ts'

/**
 * The most steps that all patterns of a list may take for one request: about a millisecond. For the header of a browser, a
 * hundred elaborate patterns take 110,000 steps, and one takes 1,000. A request that needs more is refused, since a `deny`
 * pattern might have matched.
 */
const MAX_STEPS = 200_000

/** User agents of one request that are judged, since each may take all those steps; with more it is refused. */
const MAX_AGENTS = 4

/** At least this many recent verdicts are remembered, at most twice as many: real traffic repeats a few. */
const REMEMBERED = 256
/** Longer headers are not remembered, in characters: they are rare, and each takes memory. */
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
      const count = headers.count('user-agent')
      // A service may read any of them.
      const isLetIn =
        count < 2
          ? decide(headers.get('user-agent') ?? '')
          : count <= MAX_AGENTS && headers.all('user-agent').every(decide)
      found.set('user_agent_filter.decision', isLetIn ? 'allow' : 'deny')
      return isLetIn ? undefined : refused
    },
  }
}

/** The lists of patterns that are searched. */
export function patternLists({ allow, deny }: UserAgentFilterSettings): readonly (readonly string[])[] {
  return [allow, deny]
}

const refused: RequestVerdict = { refuse: 'USER_AGENT_REFUSED' }

/** */
function passes(agent: string, isAllowed: PatternSearch, isDenied: PatternSearch): boolean {
  const allowed = isAllowed(agent, MAX_STEPS)
  if (allowed !== false) return allowed === true
  return isDenied(agent, MAX_STEPS) === false
}

/** Decodes a header, which is held as bytes, into the text that patterns expect. */
function readable(agent: string): string {
  return /^[\x20-\x7e]*$/.test(agent) ? agent : Buffer.from(agent, 'latin1').toString('utf8')
}
