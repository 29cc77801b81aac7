/** Compares two texts line by line: which lines both have, which changed, and which only one has. */

/** The most comparisons of one line with another; beyond that, lines are compared by position. */
const MAX_COMPARISONS = 1_000_000

/** How many equal lines stay in sight around each difference. */
const AROUND = 3

export interface LinePair {
  /** Undefined when only the second has the line. */
  readonly first: string | undefined
  readonly second: string | undefined
  readonly isSame: boolean
}

/** Equal lines that are not shown. */
interface FoldedLines {
  readonly folded: number
}

export function lineDifference(first: string, second: string): readonly LinePair[] {
  const [a, b] = [linesOf(first), linesOf(second)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return [
    ...a.slice(0, start).map(same),
    ...between(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]
}

/** Without the equal lines that are far from any difference. */
export function foldSame(pairs: readonly LinePair[]): readonly (LinePair | FoldedLines)[] {
  const near = new Set<number>()
  for (const [i, { isSame }] of pairs.entries()) {
    if (isSame) continue
    for (let at = i - AROUND; at <= i + AROUND; at++) near.add(at)
  }
  const shown: (LinePair | FoldedLines)[] = []
  let folded = 0
  for (const [i, pair] of pairs.entries()) {
    if (!near.has(i)) {
      folded++
      continue
    }
    if (folded > 0) shown.push({ folded })
    folded = 0
    shown.push(pair)
  }
  if (folded > 0) shown.push({ folded })
  return shown
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(/\r?\n/)
}

function same(line: string): LinePair {
  return { first: line, second: line, isSame: true }
}

function between(a: readonly string[], b: readonly string[]): LinePair[] {
  if (a.length * b.length > MAX_COMPARISONS) return beside(a, b)
  const pairs: LinePair[] = []
  let [i, j] = [0, 0]
  for (const [atA, atB] of commonLines(a, b)) {
    pairs.push(...beside(a.slice(i, atA), b.slice(j, atB)), same(a[atA] ?? ''))
    i = atA + 1
    j = atB + 1
  }
  return [...pairs, ...beside(a.slice(i), b.slice(j))]
}

/** Pairs the lines by position. */
function beside(a: readonly string[], b: readonly string[]): LinePair[] {
  return Array.from({ length: Math.max(a.length, b.length) }, (_, i) => {
    const [first, second] = [a[i], b[i]]
    return { first, second, isSame: first === second }
  })
}

/** The positions of the longest common subsequence in both. */
function commonLines(a: readonly string[], b: readonly string[]): [atA: number, atB: number][] {
  const width = b.length + 1
  // How many lines the rest from `i` of one and from `j` of the other have in common.
  const lengths = new Uint32Array((a.length + 1) * width)
  const lengthAt = (i: number, j: number): number => lengths[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1))
    }
  }
  const common: [number, number][] = []
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) common.push([i++, j++])
    else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++
    else j++
  }
  return common
}
