/** What actions there are: when each may run, its settings, and whether anything runs after it. */

import { type Static, type TObject, type TProperties, Type } from 'typebox'
import { checkHeaderName, checkHeaders } from '../model/header-rules.ts'
import { webhookProviders } from '../model/webhook-providers.ts'
import type { ActionName } from './action-names.ts'
import { checkJwt, jwtForm } from './jwt-validation.ts'
import type { Phase } from './phases.ts'
import { bad, checkCidrs, checkDuration, duration, enforce, headerList, headerMap, text } from './settings.ts'

/** `value`: CEL. `template`: text with `${CEL}` in it. `pattern`: RE2, or a template of one. */
export type SourceKind = 'value' | 'template' | 'pattern'

export interface ActionType {
  /** Without `connect` it is for HTTP only. */
  readonly phases: readonly Phase[]
  readonly config: TObject
  /** Nothing runs after it in its phase. */
  readonly ends?: boolean
  /** The settings that hold CEL or patterns. */
  readonly sources?: Readonly<Record<string, SourceKind>>
  /** Throws `BadValue` for what the form cannot express; `at` is the path of the settings. */
  readonly refine?: (config: Readonly<Record<string, unknown>>, at: string) => void
}

const MAX_BODY_BYTES = 64 * 1024
const MAX_CIDRS = 1000

const cidrs = (description: string) =>
  Type.Array(Type.String({ maxBytes: 64 }), { default: [], maxItems: MAX_CIDRS, description })

export const actions: Readonly<Record<ActionName, ActionType>> = {
  'add-headers': action({
    phases: ['request', 'response'],
    sources: { headers: 'template' },
    config: closed({ headers: headerMap('Headers to add, by name; `host` is replaced.', 1) }),
    refine: ({ headers }, at) => checkHeaders(`${at}.headers`, headers),
  }),

  'basic-auth': action({
    phases: ['request'],
    config: closed({
      credentials: Type.Array(Type.String({ maxBytes: 384 }), {
        minItems: 1,
        maxItems: 10,
        description: 'Who may enter, each as `user:password`; a password has 8 to 128 bytes.',
      }),
      realm: Type.String({ default: 'postern', maxBytes: 128, description: 'What the visitor is asked to log in to.' }),
      enforce,
    }),
    refine: ({ credentials, realm }, at) => {
      for (const [i, credential] of credentials.entries()) checkCredential(credential, `${at}.credentials[${i}]`)
      if (!/^[\x20-\x7e]*$/.test(realm)) throw bad(`${at}.realm`, 'must be plain ASCII text')
    },
  }),

  'circuit-breaker': action({
    phases: ['request'],
    config: closed({
      error_threshold: Type.Number({
        default: 0.5,
        minimum: 0,
        maximum: 1,
        description: 'Share of failed requests in the window from which requests are refused.',
      }),
      volume_threshold: Type.Integer({
        default: 10,
        minimum: 1,
        maximum: 1_000_000,
        description: 'Requests in the window before failures count.',
      }),
      window_duration: duration('10s', 'Time over which requests are counted, 1s to 2m.'),
      tripped_duration: duration('10s', 'Time for which requests are refused before one is tried again, 1s to 24h.'),
      enforce,
    }),
    refine: ({ window_duration, tripped_duration }, at) => {
      checkDuration(window_duration, `${at}.window_duration`, { least: '1s', most: '2m' })
      checkDuration(tripped_duration, `${at}.tripped_duration`, { least: '1s', most: '24h' })
    },
  }),

  'close-connection': action({ phases: ['connect', 'request'], ends: true, config: closed({}) }),

  'compress-response': action({
    phases: ['request', 'response'],
    config: closed({
      algorithms: Type.Array(Type.Enum(['gzip', 'br', 'deflate', 'compress']), {
        default: ['gzip', 'br', 'deflate'],
        minItems: 1,
        maxItems: 4,
        description: 'Compressions that may be used when the visitor accepts them.',
      }),
    }),
  }),

  'custom-response': action({
    phases: ['request', 'response'],
    ends: true,
    sources: { body: 'template', content: 'template', headers: 'template' },
    config: closed({
      status_code: Type.Integer({ default: 200, minimum: 200, maximum: 599, description: 'Status of the response.' }),
      body: Type.Optional(Type.String({ maxBytes: MAX_BODY_BYTES, description: 'Body of the response.' })),
      content: Type.Optional(Type.String({ maxBytes: MAX_BODY_BYTES, description: 'The older name of `body`.' })),
      headers: Type.Optional(headerMap('Headers of the response, by name.')),
    }),
    refine: ({ body, content, headers = {} }, at) => {
      if (body !== undefined && content !== undefined) {
        throw bad(`${at}.content`, 'is the older name of `body`, which is given too; keep `body` only')
      }
      checkHeaders(`${at}.headers`, headers)
    },
  }),

  deny: action({
    phases: ['connect', 'request'],
    ends: true,
    config: closed({
      status_code: Type.Integer({ default: 403, description: 'Status of the response: 400 to 599, or 999.' }),
    }),
    refine: ({ status_code }, at) => {
      // 999 was the default until mid 2024.
      if ((status_code < 400 || status_code > 599) && status_code !== 999) {
        throw bad(`${at}.status_code`, 'must be between 400 and 599, or 999')
      }
    },
  }),

  'jwt-validation': action({ phases: ['request'], config: jwtForm, refine: checkJwt }),

  log: action({
    phases: ['connect', 'request', 'response'],
    sources: { metadata: 'template' },
    config: closed({
      metadata: Type.Record(Type.String(), Type.Unknown(), {
        maxProperties: 50,
        maxKeyBytes: 255,
        description: 'What is written to the log, by name.',
      }),
    }),
  }),

  'rate-limit': action({
    phases: ['request'],
    sources: { bucket_key: 'value' },
    config: closed({
      name: text(1023, 'Name of this limit.'),
      algorithm: Type.Enum(['sliding_window'], { default: 'sliding_window', description: 'How requests are counted.' }),
      capacity: Type.Integer({
        minimum: 1,
        maximum: 2_000_000_000,
        description: 'Requests allowed in the time of `rate`.',
      }),
      rate: Type.String({
        maxBytes: 32,
        description: 'Time over which requests are counted: 60s to 24h in steps of 10s.',
      }),
      bucket_key: Type.Array(Type.String({ minLength: 1, maxBytes: 4096 }), {
        minItems: 1,
        maxItems: 10,
        description: 'CEL expressions; requests for which all give the same are counted together.',
      }),
      enforce,
    }),
    refine: ({ rate }, at) => checkDuration(rate, `${at}.rate`, { least: '60s', most: '24h', step: 10 }),
  }),

  redirect: action({
    phases: ['request'],
    sources: { from: 'pattern', to: 'template', headers: 'template' },
    config: closed({
      from: Type.Optional(text(1024, 'RE2 pattern of what is replaced in the URL; the whole URL when left out.')),
      to: text(4096, 'What it is replaced with; `$1` is the first group of `from`.'),
      status_code: Type.Integer({ default: 302, minimum: 300, maximum: 399, description: 'Status of the response.' }),
      headers: Type.Optional(headerMap('Headers of the response, by name.')),
    }),
    refine: ({ headers = {} }, at) => checkHeaders(`${at}.headers`, headers),
  }),

  'remove-headers': action({
    phases: ['request', 'response'],
    config: closed({ headers: headerList('Names of headers to remove, in any case.') }),
    refine: ({ headers }, at) => {
      for (const [i, name] of headers.entries()) checkHeaderName(`${at}.headers[${i}]`, name)
    },
  }),

  'restrict-ips': action({
    phases: ['connect', 'request', 'response'],
    config: closed({
      enforce,
      allow: cidrs('Networks that may connect.'),
      deny: cidrs('Networks that may not connect, also when `allow` has them.'),
      ip_policies: Type.Array(Type.String({ maxBytes: 255, pattern: '^ipp_[0-9A-Za-z]+$' }), {
        default: [],
        maxItems: 100,
        description: 'Ids of IP policies whose rules count too.',
      }),
    }),
    refine: ({ allow, deny, ip_policies }, at) => {
      if (allow.length + deny.length + ip_policies.length === 0) throw bad(at, 'needs `allow`, `deny` or `ip_policies`')
      checkCidrs(allow, `${at}.allow`)
      checkCidrs(deny, `${at}.deny`)
    },
  }),

  'set-vars': action({
    phases: ['request', 'response'],
    sources: { vars: 'template' },
    config: closed({
      vars: Type.Array(
        Type.Record(Type.String(), Type.Unknown(), { minProperties: 1, maxProperties: 1, maxKeyBytes: 64 }),
        {
          minItems: 1,
          maxItems: 20,
          description: 'Variables to set, in order, each as an object of one name and its value; read as `vars.name`.',
        },
      ),
    }),
    refine: ({ vars }, at) => {
      for (const [i, name] of vars.flatMap(Object.keys).entries()) {
        if (!/^[A-Za-z_]\w*$/.test(name))
          throw bad(`${at}.vars[${i}]`, 'must name its variable with letters, digits and `_`')
      }
    },
  }),

  'url-rewrite': action({
    phases: ['request'],
    sources: { from: 'pattern', to: 'template' },
    config: closed({
      from: text(1024, 'RE2 pattern of what is replaced in the URL, each time it occurs.'),
      to: text(4096, 'What it is replaced with; `$1` is the first group of `from`.'),
    }),
  }),

  'verify-webhook': action({
    phases: ['request'],
    config: closed({
      provider: Type.Enum(webhookProviders, { description: 'Who sends the webhooks.' }),
      secret: text(4096, 'The secret agreed with the sender.'),
      enforce,
    }),
  }),
}

/** Lets `refine` see the settings as its own form types them. */
function action<S extends TObject>(type: {
  readonly phases: readonly Phase[]
  readonly config: S
  readonly ends?: boolean
  readonly sources?: Readonly<Record<string, SourceKind>>
  readonly refine?: (config: Static<S>, at: string) => void
}): ActionType {
  // Whoever calls `refine` has just checked the settings against this very form.
  return type as unknown as ActionType
}

function closed<P extends TProperties>(properties: P): TObject<P> {
  return Type.Object(properties, { additionalProperties: false })
}

function checkCredential(credential: string, at: string): void {
  const colon = credential.indexOf(':')
  const password = Buffer.byteLength(credential.slice(colon + 1))
  if (colon < 1) throw bad(at, 'must be `user:password`')
  if (password < 8 || password > 128) throw bad(at, 'must have a password of 8 to 128 bytes')
}
