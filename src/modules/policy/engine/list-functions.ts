/** The functions of expressions that turn lists into other lists. */
import type { CelList, CelValue } from '@bufbuild/cel'
import { payFor, textOf } from './cel-values.ts'
import { Fault, type Frame, type Impls } from './evaluation-frame.ts'
import { itemsOf, MAX_ITEMS } from './operators.ts'

/** The most levels that `flatten` removes. */
const MAX_FLAT = 8
/** The cost of making one number of a range, and of checking whether an item occurred before. */
const NUMBER_NANOS = 140
const DISTINCT_NANOS = 300
/** The cost of comparing two items while sorting, and the characters that are compared in a nanosecond. */
const SORTED_NANOS = 120
const COMPARED_A_NANO = 4

export const listFunctions: Impls = {
  'lists.range/1': ({ budget }, count) => {
    if (typeof count !== 'bigint') return undefined
    if (count < 0n || count > BigInt(MAX_ITEMS)) return new Fault(`a range has 0 to ${MAX_ITEMS} numbers`)
    const length = Number(count)
    budget.charge(length * NUMBER_NANOS)
    return Array.from({ length }, (_, i) => BigInt(i))
  },
  'slice/3': (frame, list, from, to) => {
    if (!isList(frame, list) || typeof from !== 'bigint' || typeof to !== 'bigint') return undefined
    if (from < 0n || from > to || to > BigInt(list.size)) return new Fault('a slice must lie within its list')
    return itemsOf(list, frame.budget).slice(Number(from), Number(to))
  },
  'flatten/1': (frame, list) => (isList(frame, list) ? flatten(frame, list, 1) : undefined),
  'flatten/2': (frame, list, depth) => {
    if (!isList(frame, list) || typeof depth !== 'bigint') return undefined
    if (depth < 0n) return new Fault('a list is made flat by 0 levels or more')
    return flatten(frame, list, Math.min(Number(depth), MAX_FLAT))
  },
  'distinct/1': (frame, list) => {
    if (!isList(frame, list)) return undefined
    // Compared by their texts: comparing each with each would take quadratic time.
    const seen = new Map<string, CelValue>()
    for (const item of itemsOf(list, frame.budget)) {
      frame.budget.charge(DISTINCT_NANOS)
      payFor(frame.library.cel, item, frame.budget)
      const key = `${kindOf(item)} ${textOf(frame.library, item)}`
      if (!seen.has(key)) seen.set(key, item)
    }
    return [...seen.values()]
  },
  'sort/1': (frame, list) => {
    if (!isList(frame, list)) return undefined
    const items = itemsOf(list, frame.budget)
    const [first] = items
    if (items.some((item) => typeof item !== typeof first) || (first !== undefined && !isSortable(first))) {
      return new Fault('only numbers or strings of one kind can be sorted')
    }
    return items.sort((a, b) => {
      frame.budget.charge(SORTED_NANOS + (typeof a === 'string' ? a.length / COMPARED_A_NANO : 0))
      // They are all strings or all numbers, as was checked above.
      return (a as string) < (b as string) ? -1 : (a as string) > (b as string) ? 1 : 0
    })
  },
}

function isList({ library }: Frame, value: unknown): value is CelList {
  return library.cel.isCelList(value)
}

function isSortable(value: CelValue): boolean {
  return ['string', 'bigint', 'number', 'boolean'].includes(typeof value)
}

/** All numbers count as one kind, since 1, 1u and 1.0 are equal. */
function kindOf(value: CelValue): string {
  return typeof value === 'bigint' ? 'number' : typeof value
}

function flatten(frame: Frame, list: CelList, depth: number): CelValue[] | Fault {
  const flat: CelValue[] = []
  for (const item of itemsOf(list, frame.budget)) {
    const inner = depth > 0 && isList(frame, item) ? flatten(frame, item, depth - 1) : [item]
    if (inner instanceof Fault) return inner
    if (flat.length + inner.length > MAX_ITEMS) return new Fault('a list has become too long')
    for (const each of inner) flat.push(each)
  }
  return flat
}
