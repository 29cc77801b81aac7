/** Verifies the signature of a webhook, as the sender's scheme describes it. */
import { createHmac, createPublicKey, createVerify, type KeyObject } from 'node:crypto'
import type { HeaderList } from '../../lib/http/header-list.ts'
import { isSameText } from '../../lib/secrets/constant-time.ts'
import { decodeBase64 } from '../../lib/x509/pem.ts'
import type { RequestContext } from '../phases.ts'
import type { Meter } from '../policy/engine/policy-traffic.ts'
import { jsonFields } from './body-fields.ts'
import {
  inPieces,
  isTwilioForm,
  MAX_TWILIO_FORM_BYTES,
  TWILIO_HEADER,
  urlsOf,
  verifyMailgun,
  verifyTwilio,
} from './own-ways.ts'
import { type HmacScheme, type Scheme, type Timestamp, webhookSchemes } from './schemes.ts'

/** Whether the secret signed `body` and all else that the scheme names, and not too long ago. */
type Verify = (ctx: RequestContext, body: Buffer, now: number, meter: Meter) => boolean | Promise<boolean>

/** */
const MAX_BODY_BYTES = 10 * 1024 * 1024

/** A secret that this sender cannot have given; the message says what is expected. */
export class BadSecret extends Error {}

interface Verifier {
  /**
   * Whether the signature can be right, judging by the head of the request. With a header that is missing, malformed or
   * out of date, the body is not even read, so that nobody can make us hold it.
   */
  readonly isPossible: (ctx: RequestContext, now: number) => boolean
  /** Whether the signature covers the body; otherwise the body is not read. */
  readonly needsBody: boolean
  /** The longest body that is read. */
  readonly maxBytes: (ctx: RequestContext) => number
  /** Whether the signature covers the path. */
  readonly readsPath: boolean
  readonly verify: Verify
}

/** Throws when the sender is unknown, and `BadSecret` when the secret cannot be one of this sender. */
export function compileVerifier(provider: string, secret: string): Verifier {
  const scheme: Scheme | undefined = Object.hasOwn(webhookSchemes, provider)
    ? webhookSchemes[provider as keyof typeof webhookSchemes] // a key of the table, by the check before
    : undefined
  if (!scheme) throw new Error(`webhooks of ${provider} cannot be verified`)
  // With an empty key, anybody could make the digest.
  if (secret === '') throw new BadSecret('must not be empty')
  const common = { needsBody: true, maxBytes: () => MAX_BODY_BYTES, readsPath: false }
  switch (scheme.kind) {
    case 'hmac':
      return {
        ...common,
        isPossible: (ctx, now) => isHmacPossible(scheme, ctx.headers, now),
        readsPath: scheme.signed.includes('{url}'),
        verify: hmac(scheme, keyOf(scheme, secret)),
      }
    case 'token': {
      const isGiven = ({ headers }: RequestContext): boolean => isSameText(headers.get(scheme.header) ?? '', secret)
      return { ...common, isPossible: isGiven, needsBody: false, verify: isGiven }
    }
    case 'ecdsa':
      return {
        ...common,
        isPossible: ({ headers }, now) => ecdsaGiven(scheme, headers, now) !== undefined,
        verify: ecdsa(scheme, publicKey(secret)),
      }
    case 'twilio':
      return {
        ...common,
        isPossible: ({ headers }) => isDigest(headers.get(TWILIO_HEADER) ?? '', 'sha1', 'base64'),
        maxBytes: (ctx) => (isTwilioForm(ctx) ? MAX_TWILIO_FORM_BYTES : MAX_BODY_BYTES),
        readsPath: true,
        verify: verifyTwilio(secret),
      }
    case 'mailgun':
      return {
        ...common,
        // Everything is in the body.
        isPossible: () => true,
        verify: (_, body, now, meter) =>
          verifyMailgun(secret, body, { isRecent: (time) => isRecent(time, usual, now), meter }),
      }
  }
}

const usual: Timestamp = { unit: 'seconds', toleranceSeconds: 180 }

/** How many signatures of one header are tried. */
const MAX_SIGNATURES = 16

function hmac(scheme: HmacScheme, key: Buffer): Verify {
  const { digest, encoding, timestamp } = scheme
  // Text and names alternate, beginning with text.
  const parts = scheme.signed.split(/[{}]/)
  const needsUrl = parts.includes('url')
  return async (ctx, body, now, meter) => {
    const { signatures, time } = givenSignatures(scheme, ctx.headers)
    if (signatures.length === 0) return false
    const inBody = timestamp?.body
    if (timestamp && inBody === undefined && !isRecent(time, timestamp, now)) return false
    const named: Record<string, Buffer | string | undefined> = { body, timestamp: time, method: ctx.method }
    for (const url of needsUrl ? urlsOf(ctx, meter) : ['']) {
      const mac = createHmac(digest, key)
      for (const [i, part] of parts.entries()) {
        const value = i % 2 === 0 ? part : part === 'url' ? url : (named[part] ?? headerOf(ctx.headers, part))
        if (value === undefined) return false
        if (typeof value === 'string') mac.update(value)
        else await inPieces(value, (piece) => mac.update(piece), meter)
      }
      const expected = mac.digest(encoding)
      if (!signatures.some((signature) => isSameText(signature, expected))) continue
      return inBody === undefined || isRecent(await fieldOf(body, inBody, meter), timestamp ?? usual, now)
    }
    return false
  }
}

function isHmacPossible(scheme: HmacScheme, headers: HeaderList, now: number): boolean {
  const { digest, encoding, timestamp } = scheme
  const { signatures, time } = givenSignatures(scheme, headers)
  if (timestamp && timestamp.body === undefined && !isRecent(time, timestamp, now)) return false
  return signatures.some((signature) => isDigest(signature, digest, encoding))
}

const digestBytes = { sha1: 20, sha256: 32, sha512: 64 } as const

/** Whether `text` has the length and the characters of such a digest. */
function isDigest(text: string, digest: HmacScheme['digest'], encoding: HmacScheme['encoding']): boolean {
  const bytes = digestBytes[digest]
  if (encoding === 'hex') return text.length === 2 * bytes && /^[\da-f]+$/.test(text)
  return text.length === 4 * Math.ceil(bytes / 3) && /^[\w+/-]+={0,2}$/.test(text)
}

/** The signatures and the time of a request, as its headers hold them. */
function givenSignatures(scheme: HmacScheme, headers: HeaderList): { signatures: string[]; time: string | undefined } {
  const { fields, prefix = '', separator, encoding, timestamp } = scheme
  const values = scheme.headers.flatMap((name) => headers.get(name) ?? [])
  let entries = values.slice(0, MAX_SIGNATURES)
  if (separator) entries = entries.flatMap((value) => value.split(separator, MAX_SIGNATURES))
  let time = timestamp?.header === undefined ? undefined : headerOf(headers, timestamp.header)
  if (fields) {
    const pairs = entries.flatMap((value) => value.split(',', MAX_SIGNATURES)).map((each) => each.trim())
    time = valuesOf(pairs, `${fields.timestamp}=`)[0]
    entries = valuesOf(pairs, `${fields.signature}=`)
  } else {
    entries = valuesOf(
      entries.map((each) => each.trim()),
      prefix,
    )
  }
  return { signatures: encoding === 'hex' ? entries.map((each) => each.toLowerCase()) : entries, time }
}

function valuesOf(entries: readonly string[], prefix: string): string[] {
  return entries.filter((each) => each.startsWith(prefix)).map((each) => each.slice(prefix.length))
}

/** The first header that is present; `names` are separated by `|`. */
function headerOf(headers: HeaderList, names: string): string | undefined {
  for (const name of names.split('|')) if (headers.has(name)) return headers.get(name)
  return undefined
}

async function fieldOf(body: Buffer, name: string, meter: Meter): Promise<string | undefined> {
  const value = (await jsonFields(body, [name], meter)).get(name)
  return typeof value === 'number' || typeof value === 'string' ? String(value) : undefined
}

function isRecent(time: string | undefined, { unit, toleranceSeconds }: Timestamp, now: number): boolean {
  if (time === undefined || time.length > MAX_TIME_LENGTH) return false
  const isNumber = /^\d+$/.test(time)
  if (unit !== 'iso' && !isNumber) return false
  // A time without a zone is in UTC, not in the zone of this machine.
  const iso = /(?:Z|[+-]\d\d:?\d\d)$/i.test(time) ? time : `${time}Z`
  const millis = unit === 'iso' ? Date.parse(iso) : unit === 'seconds' ? Number(time) * 1000 : Number(time)
  return Math.abs(now - millis) <= toleranceSeconds * 1000
}

const MAX_TIME_LENGTH = 40

type EcdsaScheme = Extract<Scheme, { kind: 'ecdsa' }>

/** The DER of two numbers of at most 66 bytes. */
const MAX_ECDSA_BYTES = 141

/** The time and the signature of a request; undefined when they cannot be right, whatever was signed. */
function ecdsaGiven(
  { header, timestamp }: EcdsaScheme,
  headers: HeaderList,
  now: number,
): { time: string; signature: Buffer } | undefined {
  const time = headerOf(headers, timestamp.header ?? '')
  const signature = decodeBase64(headers.get(header) ?? '')
  if (time === undefined || !signature || !isRecent(time, timestamp, now)) return undefined
  return signature[0] === DER_SEQUENCE && signature.length <= MAX_ECDSA_BYTES ? { time, signature } : undefined
}

const DER_SEQUENCE = 0x30

function ecdsa(scheme: EcdsaScheme, key: KeyObject): Verify {
  return async ({ headers }, body, now, meter) => {
    const found = ecdsaGiven(scheme, headers, now)
    if (!found) return false
    const signed = createVerify('sha256').update(found.time)
    await inPieces(body, (piece) => signed.update(piece), meter)
    return signed.verify(key, found.signature)
  }
}

function keyOf({ key = 'utf8' }: HmacScheme, secret: string): Buffer {
  if (key === 'utf8') return Buffer.from(secret)
  const bytes = decodeBase64(secret.replace(/^whsec_/, ''))
  if (!bytes) throw new BadSecret('must be the secret as the sender shows it, which is base64')
  return bytes
}

function publicKey(secret: string): KeyObject {
  const der = decodeBase64(secret)
  try {
    const key = createPublicKey({ key: der ?? Buffer.alloc(0), format: 'der', type: 'spki' })
    if (key.asymmetricKeyType === 'ec') return key
  } catch {
    // The message below says all there is to say.
  }
  throw new BadSecret('must be the verification key of the sender: an EC public key in base64')
}
