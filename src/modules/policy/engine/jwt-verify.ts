/** Checks one token: its signature, issuer, audience and expiry. */
import type { JWK } from 'jose'
import { BadJson, parseJson } from '../../../lib/text/json.ts'
import { KEYS_FRESH_MS, KEYS_UNKNOWN_MS, type KeySource, KeysUnavailable } from './jwt-keys.ts'
import type { Meter } from './policy-traffic.ts'

/** How far the clock of an issuer may differ, in seconds. */
const CLOCK_TOLERANCE = 60

/** How many keys are tried for a token that does not name its key. */
const MAX_TRIED_KEYS = 10

/** The price of reading a token, and of checking it with one key: with most algorithms, and with those that take longest. */
const READ_STEPS = 20_000
const KEY_STEPS = 80_000
const SLOW_KEY_STEPS: ReadonlyMap<unknown, number> = new Map([
  ['ES384', 450_000],
  ['ES512', 900_000],
])

const MAX_VALUES = 2000
const MAX_DEPTH = 16

interface TokenRules {
  readonly issuers: readonly string[]
  /** Undefined: any audience. */
  readonly audiences: readonly string[] | undefined
  readonly algorithms: readonly string[]
  readonly sources: readonly KeySource[]
  readonly now: () => number
}

export interface ReadToken {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
  readonly signature: string
}

/** A token that is refused. The message can be logged: it holds nothing of the token. */
export class BadToken extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BadToken'
  }
}

type Jose = typeof import('jose')
/** Set only when it has loaded: an import that failed is retried by the next token. */
let loaded: Jose | undefined

async function loadJose(): Promise<Jose> {
  loaded ??= await import('jose')
  return loaded
}

/** Rejects with `BadToken`, `KeysUnavailable`, or what the meter throws. `type` is the `type` of the settings. */
type VerifyToken = (token: string, type: string, meter: Meter) => Promise<ReadToken>

export function tokenVerifier(rules: TokenRules): VerifyToken {
  const ringOf = keyRings()
  return async (token, type, meter) => {
    meter.charge(READ_STEPS)
    const read = readToken(token)
    const keySteps = SLOW_KEY_STEPS.get(read.header.alg) ?? KEY_STEPS
    const jose = await loadJose()
    const checkBy: CheckBy = (sets) =>
      check(jose, token, { ring: ringOf(sets, jose), rules, pay: () => meter.charge(keySteps) })
    await verify(read, type, rules, checkBy)
    return read
  }
}

/** What is wrong with a token by the keys of these sets; undefined when nothing is. */
type CheckBy = (sets: readonly (readonly JWK[])[]) => Promise<string | undefined>

async function verify(
  { header, payload }: ReadToken,
  type: string,
  rules: TokenRules,
  checkBy: CheckBy,
): Promise<void> {
  if (!typesOf(type).includes(typeIn(header))) throw new BadToken('its type is not the one that was asked for')
  const { sets, isPartial } = await usableKeys(rules.sources, KEYS_FRESH_MS)
  let fault = await checkBy(sets)
  if (fault && mayHaveAnotherKey(fault, header)) {
    const again = await usableKeys(rules.sources, KEYS_UNKNOWN_MS)
    if (!areSame(again.sets, sets)) fault = await checkBy(again.sets)
    // The right key may be in a set that could not be fetched.
    if (fault && (isPartial || again.isPartial)) throw new KeysUnavailable('some keys cannot be fetched')
  }
  if (fault) throw new BadToken(fault)
  if (typeof payload.iat === 'number' && payload.iat > rules.now() / 1000 + CLOCK_TOLERANCE) {
    throw new BadToken('it was issued in the future')
  }
}

function areSame(sets: readonly unknown[], others: readonly unknown[]): boolean {
  return sets.length === others.length && sets.every((set, i) => set === others[i])
}

type KeyRing = ReturnType<Jose['createLocalJWKSet']>
type RingOf = (sets: readonly (readonly JWK[])[], jose: Jose) => KeyRing

/** Merges all key sets into one, and again when a set changes. The result is kept since it caches the imported keys. */
function keyRings(): RingOf {
  let last: { readonly sets: readonly (readonly JWK[])[]; readonly ring: KeyRing } | undefined
  return (sets, jose) => {
    if (last && areSame(last.sets, sets)) return last.ring
    const ring = jose.createLocalJWKSet({ keys: sets.flat() })
    last = { sets, ring }
    return ring
  }
}

/** Splits a token into its parts, strictly: each may have only one reading, or the upstream might read another. */
function readToken(token: string): ReadToken {
  const parts = token.split('.')
  const [head = '', body = '', signature = ''] = parts
  if (parts.length !== 3 || signature === '') throw new BadToken('it is not a signed token')
  const bytes = parts.map((part) => Buffer.from(part, 'base64url'))
  // Decoders ignore foreign characters and the unused bits of the last character.
  if (bytes.some((each, i) => each.toString('base64url') !== parts[i])) throw new BadToken('it is not base64url')
  return { header: readObject(head), payload: readObject(body), signature }
}

function readObject(part: string): Readonly<Record<string, unknown>> {
  try {
    const value = parseJson(Buffer.from(part, 'base64url'), { maxDepth: MAX_DEPTH, maxValues: MAX_VALUES })
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>> // keys of JSON objects are strings
    }
  } catch (cause) {
    if (!(cause instanceof BadJson)) throw cause
  }
  throw new BadToken('it holds no JSON object')
}

/** RFC 7515 §4.1.9: `application/` may be left out. Empty when the token has no type. */
function typeIn({ typ }: ReadToken['header']): string {
  if (typ === undefined) return ''
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : 'no text'
}

/** The values of `typ` that are accepted: a token for another purpose, such as a logout token, must not pass here. */
function typesOf(type: string): readonly string[] {
  const wanted = type.toLowerCase().replace(/^application\//, '')
  if (wanted === 'jwt' || wanted === 'id_token' || wanted === 'plain') return ['', 'jwt']
  if (wanted === 'access_token') return ['', 'jwt', 'at+jwt']
  return [wanted]
}

/** The keys of all sources that answer, none older than `maxAgeMs`; rejects with `KeysUnavailable` when none does. */
async function usableKeys(
  sources: readonly KeySource[],
  maxAgeMs: number,
): Promise<{ readonly sets: readonly (readonly JWK[])[]; readonly isPartial: boolean }> {
  const results = await Promise.allSettled(sources.map((source) => source.value(maxAgeMs)))
  const sets = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  for (const failure of failures) if (!(failure instanceof KeysUnavailable)) throw failure
  if (failures.length === sources.length) throw failures[0]
  return { sets, isPartial: failures.length > 0 }
}

interface Checking {
  readonly ring: KeyRing
  readonly rules: TokenRules
  /** Pays for a check with one key. */
  readonly pay: () => void
}

async function check(jose: Jose, token: string, { ring, rules, pay }: Checking): Promise<string | undefined> {
  pay()
  const options = {
    algorithms: [...rules.algorithms],
    issuer: [...rules.issuers],
    ...(rules.audiences && { audience: [...rules.audiences] }),
    requiredClaims: ['iss', 'exp', ...(rules.audiences ? ['aud'] : [])],
    clockTolerance: CLOCK_TOLERANCE,
    currentDate: new Date(rules.now()),
  }
  const { errors } = jose
  try {
    await jose.jwtVerify(token, ring, options)
    return undefined
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return faultOf(error, jose)
    let tried = 0
    for await (const key of error) {
      if (++tried > MAX_TRIED_KEYS) break
      if (tried > 1) pay()
      try {
        await jose.jwtVerify(token, key, options)
        return undefined
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) return faultOf(failure, jose)
      }
    }
    return errors.JWSSignatureVerificationFailed.code
  }
}

/** The code of an error of the library. Throws anything else, which would be a defect of ours. */
function faultOf(error: unknown, { errors }: Jose): string {
  if (error instanceof errors.JOSEError) return error.code
  // The contents of the keys are not checked before, so importing one may fail.
  if (error instanceof TypeError || (error instanceof Error && error.name === 'DataError')) return 'ERR_JWK_INVALID'
  throw error
}

/** Whether newer keys might verify the token: it names a key that we do not have, or names none and none fits. */
function mayHaveAnotherKey(fault: string, { kid }: ReadToken['header']): boolean {
  if (fault === 'ERR_JWKS_NO_MATCHING_KEY') return true
  return fault === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' && kid === undefined
}
