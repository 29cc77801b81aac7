/** The settings of `jwt-validation`: where requests carry tokens, and which issuers and audiences are accepted. */
import type { Static } from 'typebox'
import { Type } from '../../../lib/shape/type.ts'
import { checkHeaderName } from '../../../model/header-rules.ts'
import { badSetting, closedObject, refuseExpressions, text } from './phase-settings.ts'
import { isTrustworthyUrl } from './trustworthy-url.ts'

const allowList = (description: string) =>
  closedObject(
    {
      allow_list: Type.Array(closedObject({ value: text(1024, 'The exact value.') }), {
        minItems: 1,
        maxItems: 20,
        description: 'Values, one of which must be in the token.',
      }),
    },
    description,
  )

const token = closedObject({
  type: text(
    64,
    'The `typ` header of the token, such as `jwt` or `at+jwt`; `id_token`, `access_token` and `plain` are also known.',
  ),
  method: Type.Enum(['header', 'body'], { description: 'Where the request carries the token.' }),
  name: text(256, 'Name of the header or of the form field.'),
  prefix: Type.String({ default: '', maxBytes: 64, description: 'Text before the token, such as `Bearer `.' }),
})

export type TokenSource = Static<typeof token>

/** Only algorithms with a public key: a published key set cannot hold a shared secret. */
const algorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512']

export const jwtForm = closedObject({
  issuer: allowList('Who may have issued the token (`iss`).'),
  audience: Type.Optional(allowList('For whom the token must be issued (`aud`).')),
  http: closedObject(
    {
      tokens: Type.Array(token, {
        minItems: 1,
        maxItems: 10,
        description: 'Tokens that must all be present and valid.',
      }),
    },
    'How requests carry tokens.',
  ),
  jws: closedObject(
    {
      allowed_algorithms: Type.Array(Type.Enum(algorithms), {
        minItems: 1,
        description: 'Trusted signature algorithms.',
      }),
      keys: closedObject(
        {
          sources: closedObject(
            {
              additional_jkus: Type.Array(Type.String({ maxBytes: 2048 }), {
                minItems: 1,
                maxItems: 10,
                description: 'URLs of JSON web key sets with the trusted keys.',
              }),
            },
            'Where the keys come from.',
          ),
        },
        'The trusted keys.',
      ),
    },
    'How signatures are checked.',
  ),
})

/** Throws `BadValue` for what the form cannot express. */
export function checkJwt(config: Static<typeof jwtForm>, at: string): void {
  const { http, jws } = config
  refuseExpressions(config, at)
  for (const [i, { method, name }] of http.tokens.entries()) {
    if (method === 'header') checkHeaderName(`${at}.http.tokens[${i}].name`, name)
  }
  for (const [i, jku] of jws.keys.sources.additional_jkus.entries()) {
    if (!isTrustworthyUrl(jku)) {
      throw badSetting(
        `${at}.jws.keys.sources.additional_jkus[${i}]`,
        'must be an https URL; http is for loopback addresses only',
      )
    }
  }
}
