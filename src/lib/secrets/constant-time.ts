/** Compares secrets in a time that tells nothing about where they differ. */
import { timingSafeEqual } from 'node:crypto'

/** Whether two texts are the same; only whether they are equally long can be told from the time it takes. */
export function isSameText(a: string, b: string): boolean {
  const [given, expected] = [Buffer.from(a), Buffer.from(b)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
