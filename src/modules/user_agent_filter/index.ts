/** The `user_agent_filter` module: which programs, by their `User-Agent`, may send requests. */
import { type Static, Type } from 'typebox'
import { Refusal } from '../../model/errors.ts'
import { enabled } from '../fields.ts'
import type { Module } from '../module.ts'
import { BadPattern, checkPattern, MAX_PATTERN_BYTES } from '../pattern.ts'
import { compileUserAgentFilter, type UserAgentFilterSettings } from './traffic.ts'

const MAX_PATTERNS = 100
/** Instructions in all programs of a module, which may all run for one request: 200 patterns of 100 on average. */
const MAX_PROGRAMS = 20_000

const patterns = (description: string) =>
  Type.Array(Type.String({ maxBytes: MAX_PATTERN_BYTES }), { default: [], maxItems: MAX_PATTERNS, description })

const form = Type.Object(
  {
    enabled,
    allow: patterns('RE2 regular expressions; a request passes when one matches anywhere in its `User-Agent`.'),
    deny: patterns('RE2 regular expressions; a request that none of `allow` matches is refused when one matches.'),
  },
  { additionalProperties: false },
)

export const userAgentFilter: Module = {
  name: 'user_agent_filter',
  about: 'Lets in requests whose `User-Agent` some `allow` pattern matches or no `deny` pattern matches.',
  at: { route: form },
  needs: () => 'http',
  accept: (config, { at }) => {
    // The form was checked before, so the value has its shape.
    const { allow, deny } = config as Static<typeof form>
    let total = 0
    for (const [list, entries] of Object.entries({ allow, deny })) {
      for (const [i, pattern] of entries.entries()) {
        total += programSize(`${at}${list}[${i}]`, pattern)
        // Inside the loop, so that a hostile body is not compiled to its end.
        if (total > MAX_PROGRAMS) {
          throw new Refusal(
            'BAD_REGEX',
            `the patterns of \`${at}allow\` and \`${at}deny\` are too costly together (over ${MAX_PROGRAMS} instructions, reached at \`${at}${list}[${i}]\`); use fewer or simpler ones`,
          )
        }
      }
    }
    return config
  },
  resolve: (config): UserAgentFilterSettings => {
    const { allow, deny } = config as Static<typeof form>
    return { allow, deny }
  },
  compile: compileUserAgentFilter,
}

function programSize(field: string, pattern: string): number {
  try {
    return checkPattern(pattern)
  } catch (cause) {
    if (!(cause instanceof BadPattern)) throw cause
    throw new Refusal('BAD_REGEX', `\`${field}\` ${cause.message}`, { cause })
  }
}
