/** Fetches the keys for checking tokens from the URLs in the settings, and caches them. */
import type { JSONWebKeySet, JWK } from 'jose'
import { type Fetch, FetchFault } from '../../../lib/http/outbound-fetch.ts'
import { SharedRead } from '../../../lib/http/shared-read.ts'
import { BadJson, readJson } from '../../../lib/text/json.ts'

/** How long keys are used before they are fetched again, in milliseconds. A withdrawn key stays valid for this long. */
export const KEYS_FRESH_MS = 15 * 60_000

/** The least time between fetches that tokens with an unknown key cause, in milliseconds: anybody can send such tokens. */
export const KEYS_UNKNOWN_MS = 30_000

const MAX_BYTES = 256 * 1024
const MAX_KEYS = 100

/** The longest modulus and exponent of an RSA key, in characters of base64url: 4,096 and 24 bits. */
const MAX_MODULUS = 683
const MAX_EXPONENT = 4

/** Keys cannot be fetched now. The message can be logged. */
export class KeysUnavailable extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.name = 'KeysUnavailable'
  }
}

/** Rejects with `KeysUnavailable`. */
export type KeySource = SharedRead<readonly JWK[]>

export function keySource(url: string, { fetch, now }: { fetch: Fetch; now: () => number }): KeySource {
  return new SharedRead(() => readKeys(url, fetch).catch(unavailable), now)
}

async function readKeys(url: string, fetch: Fetch): Promise<readonly JWK[]> {
  const { host } = new URL(url)
  const { status, body } = await fetch(url, { headers: { accept: 'application/jwk-set+json, application/json' } })
  if (status !== 200) throw new KeysUnavailable(`${host} answered ${status}`)
  if (body.length > MAX_BYTES) throw new KeysUnavailable(`${host} answered with more than ${MAX_BYTES} bytes`)
  const set = await readJson(body, { maxDepth: 8, maxValues: 50_000 })
  if (!isKeySet(set)) throw new KeysUnavailable(`${host} did not answer with a set of keys`)
  if (set.keys.length > MAX_KEYS) throw new KeysUnavailable(`${host} answered with more than ${MAX_KEYS} keys`)
  // Checking with a larger one takes many times of what a token pays.
  return set.keys.filter(({ n = '', e = '' }) => String(n).length <= MAX_MODULUS && String(e).length <= MAX_EXPONENT)
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return false
  return value.keys.every((key) => typeof key === 'object' && key !== null && !Array.isArray(key))
}

function unavailable(error: unknown): never {
  if (error instanceof FetchFault) throw new KeysUnavailable(error.message, { cause: error })
  if (error instanceof BadJson) throw new KeysUnavailable('the answer is not JSON', { cause: error })
  throw error
}
