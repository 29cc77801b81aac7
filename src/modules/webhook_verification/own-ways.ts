/** Verifies webhooks of the senders whose signatures fit no common scheme. */
import { createHash, createHmac } from 'node:crypto'
import { isSameText } from '../../lib/secrets/constant-time.ts'
import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { RequestContext } from '../phases.ts'
import type { Meter } from '../policy/engine/policy-traffic.ts'
import { formField, jsonFields, MAX_FORM_FIELDS } from './body-fields.ts'

/** The longest form of Twilio, in bytes. Real ones have a few KiB, and all of it must be decoded before it is verified. */
export const MAX_TWILIO_FORM_BYTES = 256 * 1024

export const TWILIO_HEADER = 'x-twilio-signature'

/**
 * Twilio: base64 HMAC-SHA1 over the URL and the sorted fields of the form. A body that is not a form is not signed;
 * the URL then holds its SHA-256.
 */
export function verifyTwilio(
  secret: string,
): (ctx: RequestContext, body: Buffer, now: number, meter: Meter) => Promise<boolean> {
  return async (ctx, body, _now, meter) => {
    const signature = ctx.headers.get(TWILIO_HEADER)
    if (signature === undefined) return false
    const isForm = isTwilioForm(ctx)
    if (isForm) meter.charge(body.length * FORM_STEPS_A_BYTE)
    const fields = isForm ? formFields(body) : ''
    if (fields === undefined || (!isForm && body.length > 0 && !(await isBodyOf(ctx.query, body, meter)))) return false
    return urlsOf(ctx, meter).some((url) => {
      const expected = createHmac('sha1', secret).update(url).update(fields).digest('base64')
      return isSameText(signature, expected)
    })
  }
}

export function isTwilioForm({ headers }: RequestContext): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(headers.get('content-type') ?? '')
}

/** The names and values, sorted and without duplicates; undefined when there are too many. */
function formFields(body: Buffer): string | undefined {
  const text = body.toString('utf8')
  if (text.split('&', MAX_FORM_FIELDS + 2).length > MAX_FORM_FIELDS) return undefined
  const values = new Map<string, Set<string>>()
  for (const [name, value] of new URLSearchParams(text)) values.set(name, (values.get(name) ?? new Set()).add(value))
  return [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, set]) => [...set].sort().map((value) => `${name}${value}`))
    .join('')
}

async function isBodyOf(query: string, body: Buffer, meter: Meter): Promise<boolean> {
  const digest = new URLSearchParams(query).get('bodySHA256') ?? ''
  const own = createHash('sha256')
  await inPieces(body, (piece) => own.update(piece), meter)
  return isSameText(digest.toLowerCase(), own.digest('hex'))
}

/**
 * Mailgun: the body holds a time, a token and the hex HMAC-SHA256 of both, as JSON or as a form. The rest of the body is
 * not signed.
 */
export async function verifyMailgun(
  secret: string,
  body: Buffer,
  { isRecent, meter }: { isRecent: (time: string) => boolean; meter: Meter },
): Promise<boolean> {
  const [timestamp = '', token = '', signature = ''] = (await mailgunFields(body, meter)).map((value) =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : '',
  )
  if (timestamp === '' || token === '' || !isRecent(timestamp)) return false
  return isSameText(signature.toLowerCase(), createHmac('sha256', secret).update(`${timestamp}${token}`).digest('hex'))
}

const mailgunNames = ['timestamp', 'token', 'signature'] as const

/** The values of `mailgunNames`. Anybody may send the body, and a form may hold a whole message: only these are read. */
async function mailgunFields(body: Buffer, meter: Meter): Promise<readonly unknown[]> {
  const isJson = /^\s*\{/.test(body.toString('latin1', 0, MAX_BLANK_BYTES))
  if (!isJson) return mailgunNames.map((name) => formField(body, name))
  const signed = (await jsonFields(body, ['signature'], meter)).get('signature')
  return mailgunNames.map((name) => (typeof signed === 'object' && signed ? Reflect.get(signed, name) : undefined))
}

/** How much white space may come before JSON. */
const MAX_BLANK_BYTES = 64

/** The steps of making and hashing a URL with what follows it, and of each of its characters. */
const URL_STEPS = 5000
const URL_STEPS_A_CHARACTER = 3

/** The URL of a request as its sender may have signed it: with and without the default port and needless escapes. */
export function urlsOf({ scheme, authority, target }: RequestContext, meter: Meter): readonly string[] {
  const host = authority.replace(/:\d+$/, '')
  const authorities = [authority, host, `${host}:${scheme === 'https' ? 443 : 80}`]
  const targets = [target, target.replace(needlessEscape, (each) => decodeURIComponent(each))]
  const urls = [...new Set(authorities.flatMap((each) => targets.map((rest) => `${scheme}://${each}${rest}`)))]
  meter.charge(urls.length * (URL_STEPS + target.length * URL_STEPS_A_CHARACTER))
  return urls
}

/** `:/?@!$'()*,;`: HubSpot signs these as characters, however they were sent. */
const needlessEscape = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi

/** 10 MiB at once would hold the event loop for up to 60 ms. */
const PIECE_BYTES = 256 * 1024

/** How many bytes are hashed for one step: the largest body fits, for senders who sign it with each form of the URL too. */
const HASHED_BYTES_A_STEP = 64

/** The steps of decoding a byte of a form. */
const FORM_STEPS_A_BYTE = 3

/** Passes all of `body` to `update`, which makes a digest, with pauses for other work. */
export async function inPieces(body: Buffer, update: (piece: Buffer) => unknown, meter: Meter): Promise<void> {
  meter.charge(body.length / HASHED_BYTES_A_STEP)
  const breath = othersTurn()
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    update(body.subarray(at, at + PIECE_BYTES))
    const pause = breath()
    if (pause) await pause
  }
}
