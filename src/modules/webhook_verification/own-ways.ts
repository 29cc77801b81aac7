/** Verifies webhooks of the senders whose signatures fit no common scheme. */
import { createHash, createHmac } from 'node:crypto'
import { isSameText } from '../../lib/secrets/constant-time.ts'
import type { RequestContext } from '../phases.ts'
import { urlsOf } from './url.ts'

/** The most fields of a form. Real ones have some dozens, and sorting costs more than reading. */
const MAX_FIELDS = 1000

export const TWILIO_HEADER = 'x-twilio-signature'

/**
 * Twilio: base64 HMAC-SHA1 over the URL and the sorted fields of the form. A body that is no form is not signed itself;
 * the URL then holds its SHA-256.
 */
export function verifyTwilio(secret: string): (ctx: RequestContext, body: Buffer) => boolean {
  return (ctx, body) => {
    const signature = ctx.headers.get(TWILIO_HEADER)
    if (signature === undefined) return false
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(ctx.headers.get('content-type') ?? '')
    const fields = isForm ? formFields(body) : ''
    if (fields === undefined || (!isForm && body.length > 0 && !isBodyOf(ctx.query, body))) return false
    return urlsOf(ctx).some((url) => {
      const expected = createHmac('sha1', secret).update(url).update(fields).digest('base64')
      return isSameText(signature, expected)
    })
  }
}

/** The names and values, sorted and without duplicates; undefined when there are too many. */
function formFields(body: Buffer): string | undefined {
  const text = body.toString('utf8')
  if (text.split('&', MAX_FIELDS + 2).length > MAX_FIELDS) return undefined
  const values = new Map<string, Set<string>>()
  for (const [name, value] of new URLSearchParams(text)) values.set(name, (values.get(name) ?? new Set()).add(value))
  return [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, set]) => [...set].sort().map((value) => `${name}${value}`))
    .join('')
}

function isBodyOf(query: string, body: Buffer): boolean {
  const digest = new URLSearchParams(query).get('bodySHA256') ?? ''
  return isSameText(digest.toLowerCase(), createHash('sha256').update(body).digest('hex'))
}

/**
 * Mailgun: the body holds a time, a token and the hex HMAC-SHA256 of both, as JSON or as a form. The rest of the body is
 * not signed.
 */
export function verifyMailgun(secret: string, body: Buffer, isRecent: (time: string) => boolean): boolean {
  const { timestamp, token, signature } = mailgunFields(body.toString('utf8'))
  if (timestamp === '' || token === '' || !isRecent(timestamp)) return false
  return isSameText(signature.toLowerCase(), createHmac('sha256', secret).update(`${timestamp}${token}`).digest('hex'))
}

function mailgunFields(text: string): Record<'timestamp' | 'token' | 'signature', string> {
  const read = (from: (name: string) => unknown) => {
    const [timestamp = '', token = '', signature = ''] = ['timestamp', 'token', 'signature'].map((name) => {
      const value = from(name)
      return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
    })
    return { timestamp, token, signature }
  }
  if (!text.trimStart().startsWith('{')) {
    const form = text.split('&', MAX_FIELDS + 2).length > MAX_FIELDS ? '' : text
    const fields = new URLSearchParams(form)
    return read((name) => fields.get(name))
  }
  try {
    const { signature } = JSON.parse(text) as { signature?: unknown }
    return read((name) => (typeof signature === 'object' && signature ? Reflect.get(signature, name) : undefined))
  } catch {
    return read(() => undefined)
  }
}
