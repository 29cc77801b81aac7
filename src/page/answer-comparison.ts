/** What differs between two answers to the same request: the status, each header, and the lines of the bodies. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { hexLines } from './hex-lines.ts'
import { laidOut } from './laid-out.ts'
import { type LinePair, lineDifference } from './line-difference.ts'
import { shownBody } from './shown-body.ts'
import { textIn } from './text-in.ts'

/** How much of each body is compared: characters of a text, or bytes. */
const COMPARED_CHARACTERS = 200_000
const COMPARED_BYTES = 16 * 1024

/** The name of a part that is not a header. The space keeps it apart: header names have none. */
const SIZE = 'body size'

/** One thing that both answers may have, such as a header. */
interface ComparedPart extends LinePair {
  readonly name: string
}

interface AnswerComparison {
  /** The status, the size of the body and each header. */
  readonly parts: readonly ComparedPart[]
  readonly lines: readonly LinePair[]
  /** Whether the bodies are longer than what was compared. */
  readonly isCut: boolean
}

export function compareAnswers(first: ListedRow, second: ListedRow): AnswerComparison {
  const [before, after] = [bodyOf(first), bodyOf(second)]
  const [a, b] = [comparedBody(before), comparedBody(after)]
  return {
    parts: [
      part('status', statusOf(first), statusOf(second)),
      ...(before && after ? [part(SIZE, textIn(before.size), textIn(after.size))] : []),
      ...compareHeaders(headersOf(first), headersOf(second)),
    ],
    lines: lineDifference(a.text, b.text),
    isCut: a.isCut || b.isCut,
  }
}

/** `The responses differ in the status, 2 headers and 1 line of the body.` */
export function comparisonText({ parts, lines, isCut }: AnswerComparison): string {
  const differing = parts.filter(({ isSame }) => !isSame).map(({ name }) => name)
  const headers = differing.filter((name) => name !== 'status' && name !== SIZE).length
  const changed = lines.filter(({ isSame }) => !isSame).length
  const differences = [
    ...(differing.includes('status') ? ['the status'] : []),
    ...(headers > 0 ? [headers === 1 ? '1 header' : `${headers} headers`] : []),
    ...(changed > 0
      ? [changed === 1 ? '1 line of the body' : `${changed.toLocaleString('en')} lines of the body`]
      : []),
  ]
  if (differences.length === 0 && differing.length > 0) differences.push('the size of the body')
  const beyond = isCut ? ' Only the beginning of the bodies was compared.' : ''
  if (differences.length === 0) return `The responses are identical.${beyond}`
  const list =
    differences.length === 1 ? differences[0] : `${differences.slice(0, -1).join(', ')} and ${differences.at(-1)}`
  return `The responses differ in ${list}.${beyond}`
}

function part(name: string, first: string | undefined, second: string | undefined): ComparedPart {
  return { name, first, second, isSame: first === second }
}

function statusOf({ status, error_code }: ListedRow): string {
  return `${typeof status === 'number' ? status : 'no response'} ${textIn(error_code)}`.trim()
}

/** The values of each header, by its name in lower case. */
function headersOf({ response }: ListedRow): ReadonlyMap<string, readonly string[]> {
  const headers = isRecord(response) && Array.isArray(response.headers) ? response.headers.filter(isRecord) : []
  const values = new Map<string, string[]>()
  for (const { name, value } of headers) {
    const key = textIn(name).toLowerCase()
    values.set(key, [...(values.get(key) ?? []), textIn(value)])
  }
  return values
}

type Headers = ReturnType<typeof headersOf>

function compareHeaders(before: Headers, after: Headers): ComparedPart[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((name) => {
    const [first = [], second = []] = [before.get(name), after.get(name)]
    const count = Math.max(first.length, second.length)
    return Array.from({ length: count }, (_, i) => part(name, first[i], second[i]))
  })
}

function bodyOf({ response }: ListedRow): ListedRow | undefined {
  return isRecord(response) && isRecord(response.body) ? response.body : undefined
}

/** The text of a body that is compared, and whether the body is longer. */
function comparedBody(body: ListedRow | undefined) {
  if (!body) return { text: '', isCut: false }
  const { encoding, content, isWhole } = shownBody(body)
  if (encoding === 'base64') {
    const { lines, left } = hexLines(content, COMPARED_BYTES)
    return { text: lines.join('\n'), isCut: !isWhole || left > 0 }
  }
  const text = isWhole ? laidOut(content) : content
  return { text: text.slice(0, COMPARED_CHARACTERS), isCut: !isWhole || text.length > COMPARED_CHARACTERS }
}
