/** Answers the challenges by which some senders verify a URL. */
import { createHmac } from 'node:crypto'
import type { RequestContext, Respond } from '../phases.ts'
import { jsonFields } from './body-fields.ts'

interface Challenge {
  /** Answers a challenge that comes without a signature, before the body is read. */
  readonly unsigned?: (ctx: RequestContext, secret: string) => Respond | undefined
  /** Answers a challenge that comes as a correctly signed webhook. */
  readonly signed?: (body: Buffer, secret: string) => Promise<Respond | undefined>
  /** The answer to a wrong signature, where the sender requires a certain one. */
  readonly refusal?: Respond
}

/** The edge answers them, since it holds the secret. */
export const webhookChallenges: Readonly<Record<string, Challenge>> = {
  twitter: {
    unsigned({ method, query }, secret) {
      const token = new URLSearchParams(query).get('crc_token') ?? ''
      // The answer signs the token, so a text that could be a webhook must not pass for a token.
      if (method !== 'GET' || !/^[\w+/=-]{8,256}$/.test(token)) return undefined
      return json({ response_token: `sha256=${createHmac('sha256', secret).update(token).digest('base64')}` })
    },
  },
  worldline: {
    unsigned({ method, headers }) {
      const value = headers.get('x-gcs-webhooks-endpoint-verification') ?? ''
      if (method !== 'GET' || !/^[\x21-\x7e]{1,256}$/.test(value)) return undefined
      return answer(200, 'text/plain', value)
    },
  },
  xero: {
    async signed(body) {
      const events = (await jsonFields(body, ['events'])).get('events')
      return Array.isArray(events) && events.length === 0 ? answer(200, 'text/plain', '') : undefined
    },
    refusal: answer(401, 'text/plain', ''),
  },
  zoom: {
    async signed(body, secret) {
      const fields = await jsonFields(body, ['event', 'payload'])
      const [event, payload] = [fields.get('event'), fields.get('payload')]
      const token = typeof payload === 'object' && payload ? Reflect.get(payload, 'plainToken') : undefined
      if (event !== 'endpoint.url_validation' || typeof token !== 'string') return undefined
      return json({ plainToken: token, encryptedToken: createHmac('sha256', secret).update(token).digest('hex') })
    },
  },
}

function json(value: unknown): Respond {
  return answer(200, 'application/json', JSON.stringify(value))
}

function answer(status: number, type: string, body: string): Respond {
  const headers = [
    ['Content-Type', type],
    // Some of these responses repeat what the visitor sent.
    ['X-Content-Type-Options', 'nosniff'],
    ['Cache-Control', 'no-store'],
  ] as const
  return { respond: { status, headers, body } }
}
