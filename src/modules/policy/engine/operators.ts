/** Implements `==`, `<`, `+`, `in` and the other operators; the library takes the cases that are left out here. */
import type { CelList, CelValue } from '@bufbuild/cel'
import type { Budget } from './budget.ts'
import { entryOf } from './cel-values.ts'
import { Fault, type Impl, type Impls } from './evaluation-frame.ts'
import { isTime, type Time } from './times.ts'
import type { Cel } from './tree.ts'

/** The longest text that an expression may make, in characters. */
export const MAX_TEXT = 256 * 1024
/** The most items of a list that an expression may make. */
export const MAX_ITEMS = 10_000

/** Characters compared in a nanosecond, and characters copied in one; V8 copies a joined text when it is read. */
const COMPARED_A_NANO = 16
const COPIED_A_NANO = 4
/** The cost of reading an item of a list and comparing it, and of copying one. */
const ITEM_NANOS = 120
const COPY_NANOS = 80
/** The cost of finding an entry of one map in another, and of converting both to values of CEL. */
const ENTRY_NANOS = 900

/** CEL specification, "Equality": numbers compare by value, whatever their kinds; other values of two kinds are not equal. */
export function equals(cel: Cel, a: unknown, b: unknown, budget: Budget): boolean {
  if (typeof a === 'string') {
    if (typeof b !== 'string' || a.length !== b.length) return false
    budget.charge(a.length / COMPARED_A_NANO)
    return a === b
  }
  // No shortcut when both are the same list or map: it may hold NaN, which is not equal to itself.
  if (typeof a !== 'object' || a === null) {
    // biome-ignore lint/suspicious/noDoubleEquals: 1 and 1n are equal
    if (isNumber(a)) return isNumber(b) ? a == b : cel.isCelUint(b) && a == b.value
    return a === b
  }
  if (typeof b !== 'object' || b === null) return cel.isCelUint(a) && isNumber(b) && equals(cel, a.value, b, budget)
  if (cel.isCelUint(a)) return cel.isCelUint(b) && a.value === b.value
  if (a instanceof Uint8Array) {
    if (!(b instanceof Uint8Array) || a.length !== b.length) return false
    budget.charge(a.length / COMPARED_A_NANO)
    return Buffer.compare(a, b) === 0
  }
  if (cel.isCelList(a)) return cel.isCelList(b) && areListsEqual(cel, a, b, budget)
  if (cel.isCelMap(a)) {
    if (!cel.isCelMap(b) || a.size !== b.size) return false
    for (const [key, item] of a) {
      budget.charge(ENTRY_NANOS)
      const other = entryOf(cel, b, key, budget)
      if (other === undefined || !equals(cel, item, other, budget)) return false
    }
    return true
  }
  if (cel.isCelType(a)) return cel.isCelType(b) && a.kind === b.kind && a.name === b.name
  return isTime(a) && isTime(b) && isSameTime(a, b)
}

function areListsEqual(cel: Cel, a: CelList, b: CelList, budget: Budget): boolean {
  if (a.size !== b.size) return false
  for (let i = 0; i < a.size; i++) {
    budget.charge(ITEM_NANOS)
    if (!equals(cel, a.get(i), b.get(i), budget)) return false
  }
  return true
}

function isSameTime({ message: a }: Time, { message: b }: Time): boolean {
  return a.$typeName === b.$typeName && a.seconds === b.seconds && a.nanos === b.nanos
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || typeof value === 'number'
}

/** Compares two values of the same simple kind; undefined for all others. */
function order(frame: Parameters<Impl>[0], a: unknown, b: unknown): number | undefined {
  if (typeof a === 'string' && typeof b === 'string') {
    frame.budget.charge(Math.min(a.length, b.length) / COMPARED_A_NANO)
    return a < b ? -1 : a > b ? 1 : 0
  }
  if ((typeof a === 'bigint' && typeof b === 'bigint') || (typeof a === 'number' && typeof b === 'number')) {
    // NaN is neither less than, greater than nor equal to anything.
    return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN
  }
  return undefined
}

function relation(holds: (order: number) => boolean): Impl {
  return (frame, a, b) => {
    const found = order(frame, a, b)
    return found === undefined ? undefined : holds(found)
  }
}

const MAX_INT = 2n ** 63n - 1n
const MIN_INT = -(2n ** 63n)

function arithmetic(
  ints: (a: bigint, b: bigint) => bigint | undefined,
  doubles: (a: number, b: number) => number,
): Impl {
  return (_frame, a, b) => {
    if (typeof a === 'bigint' && typeof b === 'bigint') {
      const result = ints(a, b)
      if (result === undefined) return new Fault('a number is divided by zero')
      return result > MAX_INT || result < MIN_INT ? new Fault('an integer has become too large') : result
    }
    return typeof a === 'number' && typeof b === 'number' ? doubles(a, b) : undefined
  }
}

const sum = arithmetic(
  (a, b) => a + b,
  (a, b) => a + b,
)

const difference = arithmetic(
  (a, b) => a - b,
  (a, b) => a - b,
)

/** The items of a list as an array. */
export function itemsOf(list: CelList, budget: Budget): CelValue[] {
  budget.charge(list.size * COPY_NANOS)
  const items: CelValue[] = []
  // The iterator of the library takes twice as long.
  for (let i = 0; i < list.size; i++) items.push(list.get(i) ?? null)
  return items
}

export const operators: Impls = {
  '_==_/2': (frame, a, b) => equals(frame.library.cel, a, b, frame.budget),
  '_!=_/2': (frame, a, b) => !equals(frame.library.cel, a, b, frame.budget),
  '_<_/2': relation((order) => order < 0),
  '_<=_/2': relation((order) => order <= 0),
  '_>_/2': relation((order) => order > 0),
  '_>=_/2': relation((order) => order >= 0),
  '!_/1': (_frame, a) => (typeof a === 'boolean' ? !a : undefined),
  '-_/1': (frame, a) => {
    if (typeof a === 'number') return -a
    return typeof a === 'bigint' ? difference(frame, 0n, a, undefined, undefined) : undefined
  },
  '_+_/2': (frame, a, b, c, d) => {
    if (typeof a === 'string' && typeof b === 'string') {
      frame.budget.charge((a.length + b.length) / COPIED_A_NANO)
      return a.length + b.length > MAX_TEXT ? new Fault('a text has become too long') : a + b
    }
    const { isCelList, celList } = frame.library.cel
    if (isCelList(a) && isCelList(b)) {
      if (a.size + b.size > MAX_ITEMS) return new Fault('a list has become too long')
      return celList([...itemsOf(a, frame.budget), ...itemsOf(b, frame.budget)])
    }
    return sum(frame, a, b, c, d)
  },
  '_-_/2': difference,
  '_*_/2': arithmetic(
    (a, b) => a * b,
    (a, b) => a * b,
  ),
  '_/_/2': arithmetic(
    (a, b) => (b === 0n ? undefined : a / b),
    (a, b) => a / b,
  ),
  '_%_/2': (_frame, a, b) => {
    if (typeof a !== 'bigint' || typeof b !== 'bigint') return undefined
    return b === 0n ? new Fault('a number is divided by zero') : a % b
  },
  '@in/2': (frame, a, b) => {
    const { cel } = frame.library
    if (cel.isCelMap(b)) return entryOf(cel, b, a, frame.budget) !== undefined
    if (!cel.isCelList(b)) return undefined
    for (let i = 0; i < b.size; i++) {
      frame.budget.charge(ITEM_NANOS)
      if (equals(cel, b.get(i), a, frame.budget)) return true
    }
    return false
  },
}
