/** Which kinds of values the signs of expressions can be put between, as far as kinds are known when they are written. */
import { any, type Kind, type Shape } from './shape.ts'

const numbers: ReadonlySet<Kind> = new Set(['int', 'uint', 'double'])
const ordered: ReadonlySet<Kind> = new Set([...numbers, 'bool', 'string', 'bytes', 'timestamp', 'duration'])

/** Whether two values can be equal. Null stands for what is not there and may be compared with all. */
export function canEqual(a: Shape, b: Shape): boolean {
  if (isOpen(a) || isOpen(b) || a.kind === 'null' || b.kind === 'null') return true
  if (numbers.has(a.kind)) return numbers.has(b.kind)
  if (a.kind === 'list' && b.kind === 'list') return canEqual(a.items ?? any, b.items ?? any)
  return isMap(a) ? isMap(b) : a.kind === b.kind
}

/** Whether `<` and its like can be put between them. */
export function canOrder(a: Shape, b: Shape): boolean {
  if (!isOpen(a) && !ordered.has(a.kind)) return false
  if (!isOpen(b) && !ordered.has(b.kind)) return false
  return canEqual(a, b)
}

/** Whether `item in of` can be asked. */
export function canContain(item: Shape, of: Shape): boolean {
  if (of.kind === 'list') return canEqual(item, of.items ?? any)
  return isOpen(of) || isMap(of)
}

/** What `a + b` and its like give; undefined when they cannot be put between these kinds. */
export function arithmetic(sign: string, a: Shape, b: Shape): Shape | undefined {
  const found = sums.find(([signs, first, second]) => signs.includes(sign) && takes(a, first) && takes(b, second))
  if (!found) return undefined
  if (isOpen(a) || isOpen(b)) return any
  if (a.kind === 'list') return { kind: 'list', items: common([a, b].flatMap(({ items }) => items ?? [])) }
  return { kind: found[3] }
}

/** Signs, what stands before and after them, and what comes of it. */
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

/** The shape that all have, or `any`. */
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
