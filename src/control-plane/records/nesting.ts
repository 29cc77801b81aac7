/** Backends inside backends: no cycles, no deep nesting, and no HTTP response behind an edge that carries bytes. */
import { plural } from '../../lib/text/plural.ts'
import { Refusal } from '../../model/errors.ts'
import type { Mention } from '../../modules/module.ts'
import { NESTING_KINDS } from '../resources/backend-lists.ts'
import { resourceOf } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import type { Writer } from '../store/writer.ts'

/** How deep weighted and failover backends may be nested. */
const MAX_LEVELS = 8
/** How many backends may be below one in all; each is visited when traffic is routed. */
const MAX_BELOW = 1000

const WAY_UP = { through: NESTING_KINDS, levels: MAX_LEVELS }
/** these edges carry bytes, so a fixed HTTP response makes no sense behind them. */
const BYTE_EDGES = ['tcp_edge', 'tls_edge']
const HTTP_ONLY = 'http_response_backend'

/**
 * Refuses a write of `resource` that would break these rules. `mentions` is everything that the resource will refer to; `id`
 * is null for a new resource. D28, R-2.3: whichever request would break a rule is refused.
 */
export async function checkNesting(
  writer: Writer,
  { kind }: Resource,
  id: string | null,
  mentions: readonly Mention[],
): Promise<void> {
  const nests = NESTING_KINDS.includes(kind)
  if (!nests && !BYTE_EDGES.includes(kind)) return
  const ids = mentions.map((mention) => mention.id)
  const { levels, response } = await lookBelow(writer, ids, id)
  if (!nests) {
    if (response) throw needsHttp(response, `this ${resourceOf(kind).noun}`)
    return
  }
  const above = id === null ? 0 : await writer.levelsAbove(id, WAY_UP)
  if (above + 1 + levels > MAX_LEVELS) throw tooDeep()
  if (id === null || !response) return
  const edge = await writer.referrerThrough(id, WAY_UP, BYTE_EDGES)
  if (edge) throw needsHttp(response, `the edge \`${edge}\`, which uses this ${resourceOf(kind).noun},`)
}

/**
 * Counts the levels below `ids`, and finds an HTTP response among them. Rows on the way are locked. Of two writes that
 * together would close a cycle, one waits for the other, or the database detects a deadlock; either way the second write
 * sees the first.
 */
async function lookBelow(
  writer: Writer,
  ids: readonly string[],
  self: string | null,
): Promise<{ levels: number; response: string | undefined }> {
  const seen = new Set<string>()
  let response: string | undefined
  let level = await writer.kinds(ids)
  for (let levels = 0; ; levels++) {
    for (const [id, kind] of level) {
      if (kind === HTTP_ONLY) response ??= id
      seen.add(id)
    }
    if (seen.size > MAX_BELOW) {
      throw new Refusal('BACKENDS_TOO_DEEP', `at most ${MAX_BELOW} backends may stand below one; name fewer of them`)
    }
    const nests = [...level].filter(([, kind]) => NESTING_KINDS.includes(kind)).map(([id]) => id)
    if (nests.length === 0) return { levels, response }
    if (self !== null && nests.includes(self)) throw inItself(self, ids)
    if (levels === MAX_LEVELS) throw tooDeep()
    await writer.hold(nests)
    level = await writer.referredBy(nests)
  }
}

function inItself(self: string, children: readonly string[]): Refusal {
  const how = children.includes(self) ? 'it names itself' : 'one of those it names contains it'
  return new Refusal('BACKEND_IN_ITSELF', `\`backends\`: a backend cannot contain \`${self}\`, itself; ${how}`, {
    field: 'backends',
  })
}

function tooDeep(): Refusal {
  const names = NESTING_KINDS.map((kind) => plural(resourceOf(kind).noun)).join(' and ')
  return new Refusal('BACKENDS_TOO_DEEP', `${names} can stand at most ${MAX_LEVELS} deep one inside the other`)
}

function needsHttp(response: string, user: string): Refusal {
  return new Refusal(
    'BACKEND_NEEDS_HTTP',
    `${user} carries bytes, but the HTTP response backend \`${response}\` would serve it; only routes of HTTPS edges can use one`,
  )
}
