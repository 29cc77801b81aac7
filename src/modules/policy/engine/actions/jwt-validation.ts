/** `jwt-validation`: lets in requests that carry tokens of a trusted issuer. */
import { defineAction, type Outcome } from '../action.ts'
import { KeysUnavailable, keySource } from '../jwt-keys.ts'
import { checkJwt, jwtForm, type TokenSource } from '../jwt-settings.ts'
import { bodyFields, findToken, type Unread } from '../jwt-tokens.ts'
import { BadToken, type ReadToken, tokenVerifier } from '../jwt-verify.ts'
import type { Moment } from '../moment.ts'
import { mapOf } from '../phase-settings.ts'

/** The `Retry-After` of a request whose body could not be read for lack of memory, in seconds. */
const BODY_RETRY_SECONDS = 5

export const jwtValidation = defineAction({
  phases: ['request'],
  guards: true,
  admits: true,
  config: jwtForm,
  refine: checkJwt,
  compile: ({ issuer, audience, http, jws }, { tools }) => {
    const valuesOf = (list: typeof issuer): readonly string[] => list.allow_list.map(({ value }) => value)
    const verify = tokenVerifier({
      issuers: valuesOf(issuer),
      audiences: audience && valuesOf(audience),
      algorithms: jws.allowed_algorithms,
      sources: jws.keys.sources.additional_jkus.map((url) => keySource(url, tools)),
      now: tools.now,
    })
    return {
      async run(moment) {
        const { ownRequest, headers } = moment
        const body = bodyFields(ownRequest, headers)
        const tokens: ReadonlyMap<string, unknown>[] = []
        for (const source of http.tokens) {
          const found = await findToken(source, headers, body)
          if ('unread' in found) return unread[found.unread]
          const outcome = found.token === undefined ? missing : await judge(found.token, source, moment)
          if ('refuse' in outcome) {
            const { code, message, refuse } = outcome
            moment.results.set('jwt_validation', mapOf({ tokens, error: mapOf({ code, message }) }))
            return refuse
          }
          tokens.push(resultOf(outcome, source))
        }
        moment.results.set('jwt_validation', new Map([['tokens', tokens]]))
        return undefined
      },
    }

    async function judge(token: string, { type }: TokenSource, { budget }: Moment): Promise<ReadToken | Refused> {
      try {
        return await verify(token, type, budget)
      } catch (error) {
        if (error instanceof BadToken) {
          tools.log.debug({ reason: error.message }, 'token refused')
          return { code: 'TOKEN_REQUIRED', message: error.message, refuse: refusal('Bearer error="invalid_token"') }
        }
        if (!(error instanceof KeysUnavailable)) throw error
        tools.log.warn({ reason: error.message }, 'token keys cannot be fetched')
        return { code: 'KEYS_UNAVAILABLE', message: error.message, refuse: { refuse: 'KEYS_UNAVAILABLE' } }
      }
    }
  },
})

const unread: Readonly<Record<Unread, Outcome>> = {
  too_large: { refuse: 'BODY_TOO_LARGE_TO_CHECK' },
  no_memory: { refuse: 'BODY_MEMORY_FULL', headers: [['Retry-After', String(BODY_RETRY_SECONDS)]] },
}

interface Refused {
  readonly code: string
  readonly message: string
  readonly refuse: Outcome
}

const missing: Refused = { code: 'TOKEN_REQUIRED', message: 'there is no token', refuse: refusal('Bearer') }

/** RFC 6750 §3 */
function refusal(challenge: string): Outcome {
  return { refuse: 'TOKEN_REQUIRED', headers: [['WWW-Authenticate', challenge]] }
}

/** What later rules can read of a verified token. */
function resultOf(
  { header, payload, signature }: ReadToken,
  { method, name }: TokenSource,
): ReadonlyMap<string, unknown> {
  const plain = { header: jsonInput(header), payload: jsonInput(payload), signature }
  return mapOf({ ...plain, location: method, location_property: name, verified: true })
}

/** JSON as expressions read it: objects are maps, and whole numbers are integers. */
function jsonInput(json: unknown): unknown {
  if (typeof json === 'number' && Number.isSafeInteger(json)) return BigInt(json)
  if (Array.isArray(json)) return json.map(jsonInput)
  if (typeof json === 'object' && json !== null) {
    return new Map(Object.entries(json).map(([name, value]) => [name, jsonInput(value)]))
  }
  return json
}
