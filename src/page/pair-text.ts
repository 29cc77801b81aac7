/** Names with values, such as the labels of a tunnel, as people write them. */
import { isRecord } from './api-caller.ts'

/** `app=shop` for each; undefined for what is anything else. */
export function pairTexts(value: unknown): string[] | undefined {
  if (!isRecord(value)) return undefined
  const pairs = Object.entries(value)
  if (!pairs.every(([, each]) => typeof each === 'string' || typeof each === 'number')) return undefined
  return pairs.map(([name, each]) => `${name}=${String(each)}`)
}
