/** Reads a challenge that another node asks this one to answer. */
import type { NameChallenge } from '../../link/planes/plane-calls.ts'

/** Undefined when it is none: a newer version may ask for more than this one knows. */
export function readChallenge(value: unknown): NameChallenge | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { name, kind, token, answer } = value as Readonly<Record<string, unknown>>
  if (typeof name !== 'string' || typeof token !== 'string' || typeof answer !== 'string') return undefined
  return kind === 'http-01' || kind === 'tls-alpn-01' ? { name, kind, token, answer } : undefined
}
