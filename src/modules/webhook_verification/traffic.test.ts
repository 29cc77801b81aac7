import assert from 'node:assert/strict'
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { webhookProviders } from '../../model/webhook-providers.ts'
import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import { request } from '../testing/test-request.ts'
import { compileWebhookVerification } from './traffic.ts'

type Given = NonNullable<Parameters<typeof request>[0]>

interface Sample {
  readonly provider: string
  readonly secret: string
  readonly seconds: number
  readonly given: Given
}

const refused = { refuse: 'WEBHOOK_REFUSED' }

function compile({ provider, secret, seconds }: Omit<Sample, 'given'>): NonNullable<Phases['request']> {
  const phase = compileWebhookVerification({ provider, secret }, { now: () => seconds * 1000 }).request
  assert.ok(phase)
  return phase
}

async function judge(sample: Sample, given: Given = {}): Promise<{ verdict: RequestVerdict; ctx: RequestContext }> {
  const ctx = request({ method: 'POST', ...sample.given, ...given })
  return { verdict: await compile(sample)(ctx), ctx }
}

/** What senders, or their own libraries, publish as examples: none of these signatures was made by us. */
const published: Record<string, Sample> = {
  'GitHub, "Validating webhook deliveries"': {
    provider: 'github',
    secret: "It's a Secret to Everybody",
    seconds: 0,
    given: {
      body: 'Hello, World!',
      headers: {
        'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      },
    },
  },
  'Slack, "Verifying requests"': {
    provider: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    seconds: 1531420618,
    given: {
      body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
      headers: {
        'X-Slack-Request-Timestamp': '1531420618',
        'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
      },
    },
  },
  'Svix, "Verifying webhooks manually"': {
    provider: 'svix',
    secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
    seconds: 1731705121,
    given: {
      body: '{"event_type":"ping","data":{"success":true}}',
      headers: {
        'svix-id': 'msg_loFOjxBNrRLzqYUf',
        'svix-timestamp': '1731705121',
        'svix-signature': 'v1,AAAA v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0= v2,x',
      },
    },
  },
  'Twilio, tests of its libraries': {
    provider: 'twilio',
    secret: '12345',
    seconds: 0,
    given: {
      authority: 'mycompany.com',
      target: '/myapp.php?foo=1&bar=2',
      query: 'foo=1&bar=2',
      body: 'To=%2B18005551212&Digits=1234&CallSid=CA1234567890ABCDE&From=%2B14158675309&Caller=%2B14158675309',
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8',
        'X-Twilio-Signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=',
      },
    },
  },
  'Box, tests of its libraries': {
    provider: 'box',
    secret: 'SamplePrimaryKey',
    seconds: Date.parse('2020-01-01T00:00:00-07:00') / 1000,
    given: {
      body: '{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","type":"file","name":"Test.txt"}}',
      headers: {
        'BOX-DELIVERY-TIMESTAMP': '2020-01-01T00:00:00-07:00',
        'BOX-SIGNATURE-PRIMARY': '6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI=',
      },
    },
  },
  'SendGrid, tests of its libraries': {
    provider: 'sendgrid',
    secret:
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==',
    seconds: 1600112502,
    given: {
      body: `[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n`,
      headers: {
        'X-Twilio-Email-Event-Webhook-Timestamp': '1600112502',
        'X-Twilio-Email-Event-Webhook-Signature':
          'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=',
      },
    },
  },
}

const NOW = 1_700_000_000
const ISO = new Date(NOW * 1000).toISOString()
const secret = 'c2VjcmV0IG9mIHRoZSBzZW5kZXI='
const body = '{"hello":"wörld"}'
const hex = (text: string, digest = 'sha256', key: string | Buffer = secret) =>
  createHmac(digest, key).update(text).digest('hex')
const base64 = (text: string, digest = 'sha256', key: string | Buffer = secret) =>
  createHmac(digest, key).update(text).digest('base64')
const decoded = Buffer.from(secret, 'base64')
const hub256 = { 'X-Hub-Signature-256': `sha256=${hex(body)}` }
const url = 'https://app.example.com/hooks?a=1'

/** Signatures made by hand from each sender's documentation. */
const made: Record<string, Given['headers']> = {
  aftership: { 'aftership-hmac-sha256': base64(body) },
  alchemy: { 'X-Alchemy-Signature': hex(body) },
  autodesk: { 'x-adsk-signature': `sha1hash=${hex(body, 'sha1')}` },
  bitbucket: { 'X-Hub-Signature': `sha256=${hex(body)}` },
  bolt: { 'X-Bolt-Hmac-Sha256': base64(body) },
  box: { 'box-signature-secondary': base64(`${body}${ISO}`), 'box-delivery-timestamp': ISO },
  buildkite: { 'X-Buildkite-Signature': `timestamp=${NOW},signature=${hex(`${NOW}.${body}`)}` },
  calendly: { 'Calendly-Webhook-Signature': `t=${NOW},v1=${hex(`${NOW}.${body}`)}` },
  castle: { 'X-Castle-Signature': base64(body) },
  chargify: { 'X-Chargify-Webhook-Signature-Hmac-Sha-256': hex(body) },
  circleci: { 'circleci-signature': `v2=x,v1=${hex(body)}` },
  clearbit: { 'X-Request-Signature': `sha1=${hex(body, 'sha1')}` },
  clerk: {
    'svix-id': 'msg_1',
    'svix-timestamp': String(NOW),
    'svix-signature': `v1,${base64(`msg_1.${NOW}.${body}`, 'sha256', decoded)}`,
  },
  coinbase: { 'X-CC-Webhook-Signature': hex(body) },
  docusign: { 'X-DocuSign-Signature-1': 'x', 'X-DocuSign-Signature-2': base64(body) },
  dropbox: { 'X-Dropbox-Signature': hex(body) },
  facebook_graph_api: hub256,
  facebook_messenger: hub256,
  frameio: { 'X-Frameio-Signature': `v0=${hex(`v0:${NOW}:${body}`)}`, 'X-Frameio-Request-Timestamp': String(NOW) },
  github: { 'X-Hub-Signature-256': `sha256=${hex(body).toUpperCase()}` },
  gitlab: { 'X-Gitlab-Token': secret },
  heroku: { 'Heroku-Webhook-Hmac-SHA256': base64(body) },
  hostedhooks: { 'HostedHooks-Signature': `t=${NOW}, s=${hex(`${NOW}.${body}`)}` },
  hubspot: {
    'X-HubSpot-Signature-v3': base64(`POST${url}${body}${NOW}000`),
    'X-HubSpot-Request-Timestamp': `${NOW}000`,
  },
  instagram: hub256,
  intercom: { 'X-Hub-Signature': `sha1=${hex(body, 'sha1')}` },
  jira: { 'X-Hub-Signature': `sha256=${hex(body)}` },
  launch_darkly: { 'X-LD-Signature': hex(body) },
  microsoft_teams: { Authorization: `HMAC ${base64(body, 'sha256', decoded)}` },
  modern_treasury: { 'X-Signature': hex(body) },
  mongodb: { 'X-MMS-Signature': base64(body, 'sha1') },
  mux: { 'Mux-Signature': `t=${NOW},v1=${hex(`${NOW}.${body}`)}` },
  orb: { 'X-Orb-Signature': `v1=${hex(`v1:${ISO.slice(0, 19)}:${body}`)}`, 'X-Orb-Timestamp': ISO.slice(0, 19) },
  pagerduty: { 'X-PagerDuty-Signature': `v1=${hex('other')},v1=${hex(body)}` },
  pinwheel: { 'x-pinwheel-signature': `v2=${hex(`v2:${NOW}:${body}`)}`, 'x-timestamp': String(NOW) },
  pusher: { 'X-Pusher-Signature': hex(body) },
  sentry: { 'Sentry-Hook-Signature': hex(body) },
  shopify: { 'X-Shopify-Hmac-Sha256': base64(body) },
  signal_sciences: { 'X-SigSci-Signature': hex(body) },
  slack: { 'X-Slack-Signature': `v0=${hex(`v0:${NOW}:${body}`)}`, 'X-Slack-Request-Timestamp': String(NOW) },
  sonatype: { 'X-Nexus-Webhook-Signature': hex(body, 'sha1') },
  square: { 'x-square-hmacsha256-signature': base64(`${url}${body}`) },
  stripe: { 'Stripe-Signature': `t=${NOW},v0=x,v1=${hex('old')},v1=${hex(`${NOW}.${body}`)}` },
  svix: {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(NOW),
    'webhook-signature': `v1,${base64(`msg_1.${NOW}.${body}`, 'sha256', decoded)}`,
  },
  terraform: { 'X-TFE-Notification-Signature': hex(body, 'sha512') },
  tiktok: { 'TikTok-Signature': `t=${NOW},s=${hex(`${NOW}.${body}`)}` },
  twitter: { 'x-twitter-webhooks-signature': `sha256=${base64(body)}` },
  typeform: { 'Typeform-Signature': `sha256=${base64(body)}` },
  webex: { 'X-Spark-Signature': hex(body, 'sha1') },
  whatsapp: hub256,
  worldline: { 'X-GCS-Signature': base64(body) },
  xero: { 'x-xero-signature': base64(body) },
  zendesk: {
    'X-Zendesk-Webhook-Signature': base64(`${ISO}${body}`),
    'X-Zendesk-Webhook-Signature-Timestamp': ISO,
  },
  zoom: { 'x-zm-signature': `v0=${hex(`v0:${NOW}:${body}`)}`, 'x-zm-request-timestamp': String(NOW) },
}

const ours: Record<string, Sample> = Object.fromEntries(
  Object.entries(made).map(([provider, headers = {}]) => [
    provider,
    { provider, secret, seconds: NOW, given: { target: '/hooks?a=1', query: 'a=1', body, headers } },
  ]),
)
const linear = `{"action":"create","webhookTimestamp":${NOW}123}`
ours.linear = {
  provider: 'linear',
  secret,
  seconds: NOW,
  given: { body: linear, headers: { 'Linear-Signature': hex(linear) } },
}
const mailgun = `{"signature":{"timestamp":"${NOW}","token":"abc","signature":"${hex(`${NOW}abc`)}"},"event-data":{}}`
ours.mailgun = { provider: 'mailgun', secret, seconds: NOW, given: { body: mailgun } }

test('every sender has an example', () => {
  const examples = [...Object.keys(ours), ...Object.values(published).map(({ provider }) => provider)]
  assert.deepEqual([...new Set(examples)].sort(), webhookProviders)
})

for (const [what, sample] of [...Object.entries(published), ...Object.entries(ours)]) {
  describe(what, () => {
    const isToken = sample.provider === 'gitlab'
    const isRefused = (verdict: RequestVerdict): void => {
      if (sample.provider === 'xero') assert.ok(verdict && 'respond' in verdict && verdict.respond.status === 401)
      else assert.deepEqual(verdict, refused)
    }

    test('a right signature passes', async () => {
      const { verdict, ctx } = await judge(sample)
      assert.equal(verdict, undefined)
      assert.equal(ctx.found.get('webhook_verification.decision'), 'allow')
    })

    test('another secret is refused', async () => {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const other = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
      const { verdict, ctx } = await judge({ ...sample, secret: other })
      isRefused(verdict)
      assert.equal(ctx.found.get('webhook_verification.decision'), 'block')
    })

    test('without its headers it is refused', async () => {
      const { verdict } = await judge(sample, { headers: {}, body: '' })
      isRefused(verdict)
    })

    // These do not sign the whole body: the first is a password, the second signs a part.
    if (!isToken && sample.provider !== 'mailgun') {
      test('another body is refused', async () => {
        const changed = Buffer.from(sample.given.body ?? '')
        changed[changed.length - 3] = (changed.at(-3) ?? 0) ^ 1
        isRefused((await judge(sample, { body: changed })).verdict)
      })
    }

    test('a header that is cut short or empty is refused', async () => {
      const names = Object.keys(sample.given.headers ?? {})
      for (const cut of [(value: string) => value.slice(0, -1), () => '', (value: string) => `${value}x`]) {
        const headers = Object.fromEntries(names.map((name) => [name, cut(String(sample.given.headers?.[name]))]))
        const changed = sample.provider === 'mailgun' ? { body: mailgun.replace('abc', 'abd') } : { headers }
        isRefused((await judge(sample, changed)).verdict)
      }
    })
  })
}

/** How old each may be, as the sender advises. */
const tolerances: Record<string, number> = {
  box: 600,
  calendly: 180,
  clerk: 300,
  hubspot: 300,
  linear: 60,
  mailgun: 180,
  orb: 300,
  slack: 300,
  stripe: 300,
  zendesk: 180,
  zoom: 180,
}

for (const [provider, seconds] of Object.entries(tolerances)) {
  test(`${provider}: a signature more than ${seconds} s old, or that far in the future, is refused`, async () => {
    const sample = ours[provider]
    assert.ok(sample)
    for (const off of [seconds - 1, 1 - seconds]) {
      assert.equal((await judge({ ...sample, seconds: NOW + off })).verdict, undefined)
    }
    for (const off of [seconds + 1, -seconds - 1]) {
      assert.deepEqual((await judge({ ...sample, seconds: NOW + off })).verdict, refused)
    }
  })
}

test('the published samples of SendGrid and Svix expire', async () => {
  for (const sample of Object.values(published).filter(({ provider }) => ['svix', 'sendgrid'].includes(provider))) {
    assert.deepEqual((await judge({ ...sample, seconds: sample.seconds + 400 })).verdict, refused)
  }
})

test('invalid times are refused, even when they are signed', async () => {
  for (const time of ['', 'now', '-1', '1e9', '0x65', ' 1700000000', '9'.repeat(400), 'NaN', 'Infinity']) {
    const headers = { 'X-Slack-Signature': `v0=${hex(`v0:${time}:${body}`)}`, 'X-Slack-Request-Timestamp': time }
    const sample = { provider: 'slack', secret, seconds: NOW, given: { body, headers } }
    assert.deepEqual((await judge(sample)).verdict, refused)
  }
})

describe('Twilio', () => {
  const token = '12345'
  const twilio = (given: Given): Sample => ({ provider: 'twilio', secret: token, seconds: NOW, given })
  const signature = (text: string) => base64(text, 'sha1', token)

  test('JSON is signed by its digest in the URL', async () => {
    const digest = createHash('sha256').update(body).digest('hex')
    const target = `/hooks?bodySHA256=${digest}`
    const headers = {
      'Content-Type': 'application/json',
      'X-Twilio-Signature': signature(`https://app.example.com${target}`),
    }
    const query = `bodySHA256=${digest}`
    assert.equal((await judge(twilio({ target, query, body, headers }))).verdict, undefined)
    assert.deepEqual((await judge(twilio({ target, query, body: `${body} `, headers }))).verdict, refused)
    const unsigned = { ...headers, 'X-Twilio-Signature': signature('https://app.example.com/hooks') }
    assert.deepEqual((await judge(twilio({ target: '/hooks', body, headers: unsigned }))).verdict, refused)
  })

  test('a call without a body is signed by its URL, with or without the port', async () => {
    for (const signed of ['https://app.example.com/hooks', 'https://app.example.com:443/hooks']) {
      const headers = { 'X-Twilio-Signature': signature(signed) }
      assert.equal((await judge(twilio({ method: 'GET', target: '/hooks', headers }))).verdict, undefined)
    }
    const headers = { 'X-Twilio-Signature': signature('https://app.example.com:8443/hooks') }
    const given = { method: 'GET', authority: 'app.example.com:8443', target: '/hooks', headers }
    assert.equal((await judge(twilio(given))).verdict, undefined)
  })

  test('a form with more fields than any call has is refused before it is sorted', async () => {
    // With the right signature: only its length can be the reason.
    const judged = async (length: number) => {
      const fields = Array.from({ length }, (_, i) => `f${String(i).padStart(6, '0')}`)
      const headers = {
        'Content-Type': 'application/x-www-form-urlencoded',
        'X-Twilio-Signature': signature(`https://app.example.com/hooks${fields.join('')}`),
      }
      return judge(twilio({ target: '/hooks', body: fields.map((name) => `${name}=`).join('&'), headers }))
    }
    assert.equal((await judged(1000)).verdict, undefined)
    for (const length of [1001, 20_000]) assert.deepEqual((await judged(length)).verdict, refused)
  })
})

test('Mailgun: the older form is verified too', async () => {
  const form = new URLSearchParams({
    timestamp: String(NOW),
    token: 'abc',
    signature: hex(`${NOW}abc`),
    event: 'opened',
  })
  const sample = { provider: 'mailgun', secret, seconds: NOW, given: { body: form.toString() } }
  assert.equal((await judge(sample)).verdict, undefined)
})

test('HubSpot: needless escapes in the URL do not matter', async () => {
  const signed = `POST${'https://app.example.com/hooks?to=a@b.c'}${body}${NOW}000`
  const headers = { 'X-HubSpot-Signature-v3': base64(signed), 'X-HubSpot-Request-Timestamp': `${NOW}000` }
  const given = { target: '/hooks?to=a%40b.c', body, headers }
  assert.equal((await judge({ provider: 'hubspot', secret, seconds: NOW, given })).verdict, undefined)
})

test('`readsPath` is set for senders that sign the URL, and for no others', () => {
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'der', type: 'spki' })
  const readers = webhookProviders.filter((provider) => {
    const secret = provider === 'sendgrid' ? key.toString('base64') : 'c2VjcmV0'
    return compileWebhookVerification({ provider, secret }, { now: () => 0 }).readsPath
  })
  assert.deepEqual(readers, ['hubspot', 'square', 'twilio'])
})

describe('a challenge that verifies the URL', () => {
  const answered = (verdict: RequestVerdict): { status: number; body: string } => {
    assert.ok(verdict && 'respond' in verdict)
    const headers = new Map(verdict.respond.headers.map(([name, value]) => [name.toLowerCase(), value]))
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    return { status: verdict.respond.status, body: verdict.respond.body.toString() }
  }

  test('Zoom: answered when it is signed', async () => {
    const question = '{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event":"endpoint.url_validation"}'
    const headers = { 'x-zm-signature': `v0=${hex(`v0:${NOW}:${question}`)}`, 'x-zm-request-timestamp': String(NOW) }
    const sample = { provider: 'zoom', secret, seconds: NOW, given: { body: question, headers } }
    const { status, body: text } = answered((await judge(sample)).verdict)
    assert.equal(status, 200)
    assert.deepEqual(JSON.parse(text), {
      plainToken: 'qgg8vlvZRS6UYooatFL8Aw',
      encryptedToken: hex('qgg8vlvZRS6UYooatFL8Aw'),
    })
    assert.deepEqual((await judge(sample, { headers: {} })).verdict, refused)
  })

  test('Twitter: answered for a token, never for what could be a webhook', async () => {
    const ask = async (token: string, method = 'GET') => {
      const query = new URLSearchParams({ crc_token: token }).toString()
      return (await judge({ provider: 'twitter', secret, seconds: NOW, given: { method, query } })).verdict
    }
    const { status, body: text } = answered(await ask('NDYxYjNkYzctZDBk'))
    assert.deepEqual([status, JSON.parse(text)], [200, { response_token: `sha256=${base64('NDYxYjNkYzctZDBk')}` }])
    for (const token of ['{"a":1}', '[1,2,3,4,5]', '"text text"', '', 'short', 'x'.repeat(257), 'a b c d e f']) {
      assert.deepEqual(await ask(token), refused)
    }
    assert.deepEqual(await ask('NDYxYjNkYzctZDBk', 'POST'), refused)
  })

  test('Worldline: answered with what it sent', async () => {
    const headers = { 'X-GCS-Webhooks-Endpoint-Verification': 'f3b4c2' }
    const sample = { provider: 'worldline', secret, seconds: NOW, given: { method: 'GET', headers } }
    assert.deepEqual(answered((await judge(sample)).verdict), { status: 200, body: 'f3b4c2' })
    assert.deepEqual((await judge(sample, { method: 'POST' })).verdict, refused)
  })

  test('Xero: 200 for a right signature and 401 for a wrong one', async () => {
    const intent = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
    const headers = { 'x-xero-signature': base64(intent) }
    const sample = { provider: 'xero', secret, seconds: NOW, given: { body: intent, headers } }
    assert.equal(answered((await judge(sample)).verdict).status, 200)
    assert.equal(answered((await judge(sample, { headers: { 'x-xero-signature': 'x' } })).verdict).status, 401)
  })
})

test('a body that is too large is not verified', async () => {
  const big = Buffer.alloc(10 * 1024 * 1024 + 1)
  const headers = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` }
  const { verdict } = await judge({ provider: 'github', secret, seconds: NOW, given: { body: big, headers } })
  assert.deepEqual(verdict, { refuse: 'BODY_TOO_LARGE_TO_CHECK' })
})

test('an unknown sender or an invalid secret cannot be compiled', () => {
  const bad: [provider: string, secret: string, reason: RegExp][] = [
    ['sns', 's', /cannot be verified/],
    ['__proto__', 's', /cannot be verified/],
    ['toString', 's', /cannot be verified/],
    ['github', '', /must not be empty/],
    ['svix', 'whsec_???', /base64/],
    ['clerk', 'whsec_', /base64/],
    ['microsoft_teams', 'no base64!', /base64/],
    ['sendgrid', secret, /EC public key/],
    ['sendgrid', 'no base64!', /EC public key/],
  ]
  for (const [provider, given, reason] of bad) {
    assert.throws(() => compile({ provider, secret: given, seconds: 0 }), reason)
  }
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const rsa = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
  assert.throws(() => compile({ provider: 'sendgrid', secret: rsa, seconds: 0 }), /EC public key/)
})

test('SendGrid: only a signature of its own key over time and body counts', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const sample = Object.values(published).find(({ provider }) => provider === 'sendgrid')
  assert.ok(sample)
  const forged = sign('sha256', Buffer.from(`1600112502${String(sample.given.body)}`), privateKey).toString('base64')
  const headers = { ...sample.given.headers, 'X-Twilio-Email-Event-Webhook-Signature': forged }
  assert.deepEqual((await judge(sample, { headers })).verdict, refused)
  const later = { ...sample.given.headers, 'X-Twilio-Email-Event-Webhook-Timestamp': '1600112503' }
  assert.deepEqual((await judge(sample, { headers: later })).verdict, refused)
})

test('never throws, whatever headers and body it gets', async () => {
  const soup = fc.string({
    unit: fc.constantFrom('=', ',', 't', 'v', '1', '0', ' ', '{', '}', '"', ':', 'é', '%'),
    maxLength: 30,
  })
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...webhookProviders), soup, soup, async (provider, value, text) => {
      const sample = ours[provider] ?? Object.values(published).find((each) => each.provider === provider)
      assert.ok(sample)
      const headers = Object.fromEntries(Object.keys(sample.given.headers ?? {}).map((name) => [name, value]))
      const { verdict } = await judge(sample, { headers, body: text, query: text })
      assert.ok(verdict !== undefined)
    }),
    { numRuns: 500 },
  )
})
