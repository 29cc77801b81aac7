/** Compares secrets without revealing through timing where they differ. */
import { timingSafeEqual } from 'node:crypto'

/** Whether two texts are the same; the time taken reveals only whether their lengths are equal. */
export function isSameText(a: string, b: string): boolean {
  const [given, expected] = [Buffer.from(a), Buffer.from(b)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
