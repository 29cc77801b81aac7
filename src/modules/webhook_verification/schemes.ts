/** How each sender signs its webhooks, by its public documentation. */
import type { WebhookProvider } from '../../model/webhook-providers.ts'

/** A keyed digest, which most senders use. */
export interface HmacScheme {
  readonly kind: 'hmac'
  /** The headers that may carry the signature, in lower case. */
  readonly headers: readonly string[]
  readonly digest: 'sha1' | 'sha256' | 'sha512'
  readonly encoding: 'hex' | 'base64'
  /** What is signed: text, and in braces `body`, `timestamp`, `url`, `method` or the name of a header. */
  readonly signed: string
  /** The text before the signature, such as `sha256=`. */
  readonly prefix?: string
  /** The separator between several signatures, of which one must be right. */
  readonly separator?: ',' | ' '
  /** Set when the header is a list such as `t=…,v1=…`: the names of the time and of the signature in it. */
  readonly fields?: { readonly timestamp: string; readonly signature: string }
  readonly timestamp?: Timestamp
  /** How the key is made from the secret; `utf8` when left out. */
  readonly key?: 'utf8' | 'base64'
}

export interface Timestamp {
  /** A header, a path into the JSON of the body, or one of `fields`. */
  readonly header?: string
  readonly body?: string
  readonly unit: 'seconds' | 'milliseconds' | 'iso'
  /** How far the time may be from our clock: what the sender recommends, or else three minutes. */
  readonly toleranceSeconds: number
}

export type Scheme =
  | HmacScheme
  /** The secret itself in a header. */
  | { readonly kind: 'token'; readonly header: string }
  /** A signature that a public key, in base64, verifies; over time and body. */
  | { readonly kind: 'ecdsa'; readonly header: string; readonly timestamp: Timestamp }
  /** Schemes that only one sender uses. */
  | { readonly kind: 'twilio' | 'mailgun' }

/** For senders that recommend nothing. */
const USUAL_SECONDS = 180

/** A digest of the body alone. */
function ofBody(
  header: string | readonly string[],
  encoding: 'hex' | 'base64',
  more: Partial<Omit<HmacScheme, 'kind' | 'headers' | 'encoding'>> = {},
): HmacScheme {
  return { kind: 'hmac', headers: [header].flat(), digest: 'sha256', encoding, signed: '{body}', ...more }
}

/** `t=<seconds>,v1=<hex>` over time and body; names may differ. */
function datedScheme(
  header: string,
  timestamp: string,
  signature: string,
  toleranceSeconds = USUAL_SECONDS,
): HmacScheme {
  return {
    ...ofBody(header, 'hex', { signed: '{timestamp}.{body}', fields: { timestamp, signature } }),
    timestamp: { unit: 'seconds', toleranceSeconds },
  }
}

/** `<version>=<hex>` over version, time and body, with the time in a separate header. */
function versionedScheme(header: string, version: string, timestamp: Timestamp): HmacScheme {
  return ofBody(header, 'hex', { prefix: `${version}=`, signed: `${version}:{timestamp}:{body}`, timestamp })
}

const inHeader = (header: string, unit: Timestamp['unit'], toleranceSeconds = USUAL_SECONDS): Timestamp => ({
  header,
  unit,
  toleranceSeconds,
})

const meta = ofBody('x-hub-signature-256', 'hex', { prefix: 'sha256=' })
const hubSha1 = ofBody('x-hub-signature', 'hex', { prefix: 'sha1=', digest: 'sha1' })
const hubSha256 = ofBody('x-hub-signature', 'hex', { prefix: 'sha256=' })

const svix = ofBody(['svix-signature', 'webhook-signature'], 'base64', {
  prefix: 'v1,',
  separator: ' ',
  signed: '{svix-id|webhook-id}.{timestamp}.{body}',
  timestamp: inHeader('svix-timestamp|webhook-timestamp', 'seconds', 300),
  key: 'base64',
})

/** webhooks of other senders are refused on save. */
export const webhookSchemes = {
  aftership: ofBody(['aftership-hmac-sha256', 'as-signature-hmac-sha256'], 'base64'),
  alchemy: ofBody('x-alchemy-signature', 'hex'),
  autodesk: ofBody('x-adsk-signature', 'hex', { prefix: 'sha1hash=', digest: 'sha1' }),
  bitbucket: hubSha256,
  bolt: ofBody('x-bolt-hmac-sha256', 'base64'),
  box: ofBody(['box-signature-primary', 'box-signature-secondary'], 'base64', {
    signed: '{body}{timestamp}',
    timestamp: inHeader('box-delivery-timestamp', 'iso', 600),
  }),
  buildkite: datedScheme('x-buildkite-signature', 'timestamp', 'signature'),
  calendly: datedScheme('calendly-webhook-signature', 't', 'v1'),
  castle: ofBody('x-castle-signature', 'base64'),
  chargify: ofBody('x-chargify-webhook-signature-hmac-sha-256', 'hex'),
  circleci: ofBody('circleci-signature', 'hex', { prefix: 'v1=', separator: ',' }),
  clearbit: ofBody('x-request-signature', 'hex', { prefix: 'sha1=', digest: 'sha1' }),
  clerk: svix,
  coinbase: ofBody('x-cc-webhook-signature', 'hex'),
  docusign: ofBody(
    Array.from({ length: 10 }, (_, i) => `x-docusign-signature-${i + 1}`),
    'base64',
  ),
  dropbox: ofBody('x-dropbox-signature', 'hex'),
  facebook_graph_api: meta,
  facebook_messenger: meta,
  frameio: versionedScheme('x-frameio-signature', 'v0', inHeader('x-frameio-request-timestamp', 'seconds', 300)),
  github: meta,
  gitlab: { kind: 'token', header: 'x-gitlab-token' },
  heroku: ofBody('heroku-webhook-hmac-sha256', 'base64'),
  hostedhooks: datedScheme('hostedhooks-signature', 't', 's'),
  // Versions 1 and 2 are not keyed digests: one signature lets an attacker sign a longer text (length extension).
  hubspot: ofBody('x-hubspot-signature-v3', 'base64', {
    signed: '{method}{url}{body}{timestamp}',
    timestamp: inHeader('x-hubspot-request-timestamp', 'milliseconds', 300),
  }),
  instagram: meta,
  intercom: hubSha1,
  jira: hubSha256,
  launch_darkly: ofBody('x-ld-signature', 'hex'),
  linear: ofBody('linear-signature', 'hex', {
    timestamp: { body: 'webhookTimestamp', unit: 'milliseconds', toleranceSeconds: 60 },
  }),
  mailgun: { kind: 'mailgun' },
  microsoft_teams: ofBody('authorization', 'base64', { prefix: 'HMAC ', key: 'base64' }),
  modern_treasury: ofBody('x-signature', 'hex'),
  mongodb: ofBody('x-mms-signature', 'base64', { digest: 'sha1' }),
  mux: datedScheme('mux-signature', 't', 'v1', 300),
  orb: versionedScheme('x-orb-signature', 'v1', inHeader('x-orb-timestamp', 'iso', 300)),
  pagerduty: ofBody('x-pagerduty-signature', 'hex', { prefix: 'v1=', separator: ',' }),
  pinwheel: versionedScheme('x-pinwheel-signature', 'v2', inHeader('x-timestamp', 'seconds')),
  pusher: ofBody('x-pusher-signature', 'hex'),
  sendgrid: {
    kind: 'ecdsa',
    header: 'x-twilio-email-event-webhook-signature',
    timestamp: inHeader('x-twilio-email-event-webhook-timestamp', 'seconds'),
  },
  sentry: ofBody('sentry-hook-signature', 'hex'),
  shopify: ofBody('x-shopify-hmac-sha256', 'base64'),
  signal_sciences: ofBody('x-sigsci-signature', 'hex'),
  slack: versionedScheme('x-slack-signature', 'v0', inHeader('x-slack-request-timestamp', 'seconds', 300)),
  sonatype: ofBody('x-nexus-webhook-signature', 'hex', { digest: 'sha1' }),
  square: ofBody('x-square-hmacsha256-signature', 'base64', { signed: '{url}{body}' }),
  stripe: datedScheme('stripe-signature', 't', 'v1', 300),
  svix,
  terraform: ofBody('x-tfe-notification-signature', 'hex', { digest: 'sha512' }),
  tiktok: datedScheme('tiktok-signature', 't', 's'),
  twilio: { kind: 'twilio' },
  twitter: ofBody('x-twitter-webhooks-signature', 'base64', { prefix: 'sha256=' }),
  typeform: ofBody('typeform-signature', 'base64', { prefix: 'sha256=' }),
  webex: ofBody('x-spark-signature', 'hex', { digest: 'sha1' }),
  whatsapp: meta,
  worldline: ofBody('x-gcs-signature', 'base64'),
  xero: ofBody('x-xero-signature', 'base64'),
  zendesk: ofBody('x-zendesk-webhook-signature', 'base64', {
    signed: '{timestamp}{body}',
    timestamp: inHeader('x-zendesk-webhook-signature-timestamp', 'iso'),
  }),
  zoom: versionedScheme('x-zm-signature', 'v0', inHeader('x-zm-request-timestamp', 'seconds')),
} as const satisfies Readonly<Record<WebhookProvider, Scheme>>
