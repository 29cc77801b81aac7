/** The `user_agent_filter` module: which programs, by their `User-Agent`, may send requests. */
import { affordable, BadPattern, checkPattern, MAX_PATTERN_BYTES } from '../../lib/patterns/pattern.ts'
import { totalPrice } from '../../lib/patterns/pattern-price.ts'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { defineModule, moduleForm } from '../module.ts'

const MAX_PATTERNS = 100
/** The price of all patterns of a module, which may all run for one request: 200 patterns of 100 on average. */
const MAX_PRICE = 20_000

const patterns = (description: string) =>
  Type.Array(Type.String({ maxBytes: MAX_PATTERN_BYTES }), { default: [], maxItems: MAX_PATTERNS, description })

const form = moduleForm({
  allow: patterns('RE2 regular expressions; a request passes when one matches anywhere in its `User-Agent`.'),
  deny: patterns('RE2 regular expressions; a request that none of `allow` matches is refused when one matches.'),
})

/** RE2 patterns: D35, a request passes when one of `allow` matches or none of `deny` does. */
export interface UserAgentFilterSettings {
  readonly allow: readonly string[]
  readonly deny: readonly string[]
}

export const userAgentFilter = defineModule({
  name: 'user_agent_filter',
  about: 'Lets in requests whose `User-Agent` some `allow` pattern matches or no `deny` pattern matches.',
  at: { route: form },
  needs: () => 'http',
  accept: (config, { at }) => {
    const { allow, deny } = config
    const written = Object.entries({ allow, deny }).flatMap(([list, entries]) =>
      entries.map((pattern, i) => ({ pattern, field: `${at}${list}[${i}]` })),
    )
    // Prices come first: nothing is compiled unless all of it is affordable.
    let total = 0
    for (const { pattern, field } of written) {
      total += asRefusal(field, () => affordable(pattern))
      if (total > MAX_PRICE) {
        throw new Refusal(
          'BAD_REGEX',
          `the patterns of \`${at}allow\` and \`${at}deny\` are too costly together (over ${MAX_PRICE} instructions, reached at \`${field}\`); use fewer or simpler ones`,
          { field },
        )
      }
    }
    for (const { pattern, field } of written) asRefusal(field, () => checkPattern(pattern))
    return config
  },
  price: ({ allow, deny }) => totalPrice([...allow, ...deny]),
  resolve: ({ allow, deny }): UserAgentFilterSettings => ({ allow, deny }),
})

function asRefusal(field: string, check: () => number): number {
  try {
    return check()
  } catch (cause) {
    if (!(cause instanceof BadPattern)) throw cause
    throw new Refusal('BAD_REGEX', `\`${field}\` ${cause.message}`, { field, cause })
  }
}
