/** Random names for endpoints whose agent leaves the choice to us. */
import { adjectives, nouns } from './random-words.ts'

export type RandomBytes = (bytes: number) => Uint8Array

/** `<word>-<word>-<4 hex>.<domain>`: some seven hundred million, so that collisions are rare. */
export function randomName(domain: string, random: RandomBytes): string {
  const [a = 0, b = 0, c = 0, d = 0, ...hex] = random(6)
  const adjective = adjectives[((a << 8) | b) % adjectives.length]
  const noun = nouns[((c << 8) | d) % nouns.length]
  return `${adjective}-${noun}-${Buffer.from(hex).toString('hex')}.${domain}`
}
