/** Which operators take which kinds of values, as far as the kinds are known before an expression runs. */
import { any, type Kind, type Shape } from './policy-shape.ts'

const numbers: ReadonlySet<Kind> = new Set(['int', 'uint', 'double'])
const ordered: ReadonlySet<Kind> = new Set([...numbers, 'bool', 'string', 'bytes', 'timestamp', 'duration'])

/** Whether two values can be equal. Null can be compared with anything: it stands for a missing value. */
export function canEqual(a: Shape, b: Shape): boolean {
  if (isOpen(a) || isOpen(b) || a.kind === 'null' || b.kind === 'null') return true
  if (numbers.has(a.kind)) return numbers.has(b.kind)
  if (a.kind === 'list' && b.kind === 'list') return canEqual(a.items ?? any, b.items ?? any)
  return isMap(a) ? isMap(b) : a.kind === b.kind
}

/** Whether `<`, `<=`, `>` and `>=` can compare them. */
export function canOrder(a: Shape, b: Shape): boolean {
  if (!isOpen(a) && !ordered.has(a.kind)) return false
  if (!isOpen(b) && !ordered.has(b.kind)) return false
  return canEqual(a, b)
}

/** Whether `item in of` is possible. */
export function canContain(item: Shape, of: Shape): boolean {
  if (of.kind === 'list') return canEqual(item, of.items ?? any)
  return isOpen(of) || isMap(of)
}

/** The shape of `a + b`, or with another arithmetic operator; undefined when it does not take these kinds. */
export function arithmetic(sign: string, a: Shape, b: Shape): Shape | undefined {
  const found = sums.find(([signs, first, second]) => signs.includes(sign) && takes(a, first) && takes(b, second))
  if (!found) return undefined
  if (isOpen(a) || isOpen(b)) return any
  if (a.kind === 'list') return { kind: 'list', items: common([a, b].flatMap(({ items }) => items ?? [])) }
  return { kind: found[3] }
}

/** Operators, the kinds of their two operands, and the kind of the result. */
const sums: readonly (readonly [signs: string, first: Kind, second: Kind, gives: Kind])[] = [
  ['+-*/%', 'int', 'int', 'int'],
  ['+-*/%', 'uint', 'uint', 'uint'],
  ['+-*/', 'double', 'double', 'double'],
  ['+', 'string', 'string', 'string'],
  ['+', 'bytes', 'bytes', 'bytes'],
  ['+', 'list', 'list', 'list'],
  ['+-', 'duration', 'duration', 'duration'],
  ['+-', 'timestamp', 'duration', 'timestamp'],
  ['+', 'duration', 'timestamp', 'timestamp'],
  ['-', 'timestamp', 'timestamp', 'duration'],
]

/** The shape that all of them share, or `any`. */
export function common(shapes: readonly Shape[]): Shape {
  const [first, ...others] = shapes
  return first && others.every(({ kind }) => kind === first.kind) ? first : any
}

function takes({ kind }: Shape, wanted: Kind): boolean {
  return kind === wanted || kind === 'any'
}

function isMap({ kind }: Shape): boolean {
  return kind === 'map' || kind === 'record'
}

function isOpen({ kind }: Shape): boolean {
  return kind === 'any'
}
