/** Between the values of the evaluator and plain ones, and what a value weighs. */
import type { CelValue } from '@bufbuild/cel'
import type { Cel } from './tree.ts'

/** Levels of lists and maps in each other that are looked into. */
const MAX_DEPTH = 16

/** What it costs to read a value, in steps; stops to count above `most`. */
export function weightOf(cel: Cel, value: unknown, most: number, depth = 0): number {
  if (typeof value === 'string') return 1 + value.length / CHARACTERS_A_STEP
  if (value instanceof Uint8Array) return 1 + value.length / CHARACTERS_A_STEP
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 1
  let weight = 1
  if (cel.isCelList(value)) {
    weight += value.size / ITEMS_A_STEP
    for (const item of value) {
      if (weight > most) return weight
      weight += weightOf(cel, item, most - weight, depth + 1) / 4
    }
  } else if (cel.isCelMap(value)) {
    weight += value.size / ITEMS_A_STEP
    for (const [key, item] of value) {
      if (weight > most) return weight
      weight += (weightOf(cel, key, most, depth + 1) + weightOf(cel, item, most - weight, depth + 1)) / 2
    }
  }
  return weight
}

/** Functions read characters much faster than the evaluator walks nodes. */
const CHARACTERS_A_STEP = 32
const ITEMS_A_STEP = 4

/** A value as plain data: integers as numbers where they fit, times and durations as texts. */
export function plainValue(cel: Cel, value: CelValue, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw new Error('the value is nested too deep')
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (cel.isCelUint(value)) return plainValue(cel, value.value)
  if (cel.isCelList(value)) return Array.from(value, (item) => plainValue(cel, item, depth + 1))
  if (cel.isCelMap(value)) {
    return Object.fromEntries(Array.from(value, ([key, item]) => [keyText(key), plainValue(cel, item, depth + 1)]))
  }
  return textOf(cel, value)
}

function keyText(key: unknown): string {
  if (typeof key === 'object' && key !== null && 'value' in key) return String(key.value)
  return String(key)
}

/** A value as text, as `${…}` puts it into other text. */
export function textOf(cel: Cel, value: CelValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'bigint' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8')
  if (cel.isCelList(value) || cel.isCelMap(value)) return JSON.stringify(plainValue(cel, value))
  if (cel.isCelUint(value)) return String(value.value)
  if (cel.isCelType(value)) return value.name
  const text = cel.plan(stringEnv(cel), stringOf(cel))({ value })
  if (typeof text !== 'string') throw new Error('the value cannot be written as text')
  return text
}

function stringEnv(cel: Cel): ReturnType<Cel['celEnv']> {
  return cel.celEnv()
}

function stringOf(cel: Cel): ReturnType<Cel['parse']> {
  return cel.parse('string(value)')
}
