/** Fetches the keys for checking tokens from the URLs in the settings, and caches them. */
import type { JSONWebKeySet, JWK } from 'jose'
import { type Fetch, FetchFault } from '../../../lib/http/outbound-fetch.ts'
import { BadJson, readJson } from '../../../lib/text/json.ts'

/** How long keys are used before they are fetched again, in milliseconds. A withdrawn key stays valid for this long. */
const FRESH_MS = 15 * 60_000

/** The least time between fetches that tokens with an unknown key cause, in milliseconds: anybody can send such tokens. */
const UNKNOWN_MS = 30_000

/** How long a failed fetch is not repeated, in milliseconds, since requests wait while one is under way. */
const FAILED_MS = 2000

const MAX_BYTES = 256 * 1024
const MAX_KEYS = 100

/** Keys cannot be fetched now. The message can be logged. */
export class KeysUnavailable extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.name = 'KeysUnavailable'
  }
}

export interface KeySource {
  /** Rejects with `KeysUnavailable`. */
  keys(): Promise<readonly JWK[]>
  /** For a token that matches no key of `keys`: fetches again, unless that was just done. */
  keysAfterMiss(): Promise<readonly JWK[]>
}

export function keySource(url: string, { fetch, now }: { fetch: Fetch; now: () => number }): KeySource {
  let known: { readonly keys: readonly JWK[]; readonly readAt: number } | undefined
  let reading: Promise<readonly JWK[]> | undefined
  let failed: { readonly error: KeysUnavailable; readonly at: number } | undefined

  const read = async (): Promise<readonly JWK[]> => {
    try {
      const keys = await readKeys(url, fetch)
      known = { keys, readAt: now() }
      failed = undefined
      return keys
    } catch (error) {
      failed = { error: unavailable(error), at: now() }
      throw failed.error
    } finally {
      reading = undefined
    }
  }

  /** One fetch at a time, shared by all requests that wait for it. */
  const readOnce = (): Promise<readonly JWK[]> => {
    if (!reading && failed && now() - failed.at < FAILED_MS) return Promise.reject(failed.error)
    reading ??= read()
    return reading
  }

  const isYounger = (ms: number): boolean => known !== undefined && now() - known.readAt < ms

  return {
    keys: () => (known && isYounger(FRESH_MS) ? Promise.resolve(known.keys) : readOnce()),
    keysAfterMiss: () => (known && isYounger(UNKNOWN_MS) ? Promise.resolve(known.keys) : readOnce()),
  }
}

async function readKeys(url: string, fetch: Fetch): Promise<readonly JWK[]> {
  const { host } = new URL(url)
  const { status, body } = await fetch(url, { headers: { accept: 'application/jwk-set+json, application/json' } })
  if (status !== 200) throw new KeysUnavailable(`${host} answered ${status}`)
  if (body.length > MAX_BYTES) throw new KeysUnavailable(`${host} answered with more than ${MAX_BYTES} bytes`)
  const set = await readJson(body, { maxDepth: 8, maxValues: 50_000 })
  if (!isKeySet(set)) throw new KeysUnavailable(`${host} did not answer with a set of keys`)
  if (set.keys.length > MAX_KEYS) throw new KeysUnavailable(`${host} answered with more than ${MAX_KEYS} keys`)
  return set.keys
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return false
  return value.keys.every((key) => typeof key === 'object' && key !== null && !Array.isArray(key))
}

function unavailable(error: unknown): KeysUnavailable {
  if (error instanceof KeysUnavailable) return error
  if (error instanceof FetchFault) return new KeysUnavailable(error.message, { cause: error })
  if (error instanceof BadJson) return new KeysUnavailable('the answer is not JSON', { cause: error })
  throw error
}
