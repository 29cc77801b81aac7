/** The settings of `jwt-validation`: where tokens stand in a request, and who may have signed them for whom. */
import type { Static } from 'typebox'
import { Type } from '../lib/shape/type.ts'
import { checkHeaderName } from '../model/header-rules.ts'
import { bad, refuseExpressions, text } from './settings.ts'
import { isTrustworthyUrl } from './trustworthy-url.ts'

const allowList = (description: string) =>
  Type.Object(
    {
      allow_list: Type.Array(Type.Object({ value: text(1024, 'The exact value.') }, { additionalProperties: false }), {
        minItems: 1,
        maxItems: 20,
        description: 'Values of which one must be in the token.',
      }),
    },
    { additionalProperties: false, description },
  )

const token = Type.Object(
  {
    type: text(
      64,
      'What the token says it is in its `typ` header, such as `jwt` or `at+jwt`; `id_token`, `access_token` and `plain` are known too.',
    ),
    method: Type.Enum(['header', 'body'], { description: 'Where the token stands in the request.' }),
    name: text(256, 'Name of the header or of the form field.'),
    prefix: Type.String({ default: '', maxBytes: 64, description: 'What stands before the token, such as `Bearer `.' }),
  },
  { additionalProperties: false },
)

export type TokenPlace = Static<typeof token>

/** Only signatures that a public key proves: a key set that is published cannot hold a shared secret. */
const algorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512']

export const jwtForm = Type.Object(
  {
    issuer: allowList('Who may have issued the token (`iss`).'),
    audience: Type.Optional(allowList('Whom the token must be meant for (`aud`).')),
    http: Type.Object(
      {
        tokens: Type.Array(token, {
          minItems: 1,
          maxItems: 10,
          description: 'Tokens that must all be there and valid.',
        }),
      },
      { additionalProperties: false, description: 'How tokens come with a request.' },
    ),
    jws: Type.Object(
      {
        allowed_algorithms: Type.Array(Type.Enum(algorithms), {
          minItems: 1,
          description: 'Signature algorithms that are trusted.',
        }),
        keys: Type.Object(
          {
            sources: Type.Object(
              {
                additional_jkus: Type.Array(Type.String({ maxBytes: 2048 }), {
                  minItems: 1,
                  maxItems: 10,
                  description: 'URLs of JSON web key sets with the keys that are trusted.',
                }),
              },
              { additionalProperties: false, description: 'Where the keys come from.' },
            ),
          },
          { additionalProperties: false, description: 'The keys that are trusted.' },
        ),
      },
      { additionalProperties: false, description: 'How signatures are checked.' },
    ),
  },
  { additionalProperties: false },
)

/** Throws `BadValue` for what the form cannot express. */
export function checkJwt(config: Static<typeof jwtForm>, at: string): void {
  const { http, jws } = config
  refuseExpressions(config, at)
  for (const [i, { method, name }] of http.tokens.entries()) {
    if (method === 'header') checkHeaderName(`${at}.http.tokens[${i}].name`, name)
  }
  for (const [i, jku] of jws.keys.sources.additional_jkus.entries()) {
    if (!isTrustworthyUrl(jku)) {
      throw bad(
        `${at}.jws.keys.sources.additional_jkus[${i}]`,
        'must be an https URL; http is for loopback addresses only',
      )
    }
  }
}
