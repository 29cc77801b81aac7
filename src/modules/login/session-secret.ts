/** The secret in a session cookie: random, with a keyed checksum that tells it from a made-up one without a look-up. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { LoginScope } from '../../model/logins.ts'

/** 162 random bits and 96 bits of checksum, in base64url: together as long as secrets without a checksum were. */
const RANDOM_CHARS = 27
const CHECKSUM_CHARS = 16

/** What the secrets in session cookies look like. Those of version 0.1 are random to their end. */
export const secretForm = /^[\w-]{43}$/

type Secret = Pick<LoginScope, 'secret' | 'host'>

export function sessionSecrets(sealer: Pick<Sealer, 'digestFor'>) {
  const digest = sealer.digestFor('session cookies')
  const checksum = (host: string, random: string) => digest(`${host}\0${random}`).slice(0, CHECKSUM_CHARS)
  return {
    make: (host: string): string => {
      const random = randomBytes(RANDOM_CHARS).toString('base64url').slice(0, RANDOM_CHARS)
      return random + checksum(host, random)
    },
    /** False for one that somebody made up, that is for another host, or that was made before there were checksums. */
    isOurs: ({ secret, host }: Secret): boolean => {
      const [shown, expected] = [secret.slice(RANDOM_CHARS), checksum(host, secret.slice(0, RANDOM_CHARS))]
      return shown.length === CHECKSUM_CHARS && timingSafeEqual(Buffer.from(shown), Buffer.from(expected))
    },
  }
}
