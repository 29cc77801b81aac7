/** Writes answers as JSON without blocking the event loop: a list may have a hundred items of a megabyte each. */
import { Readable } from 'node:stream'
import { othersTurn } from '../../lib/threads/others-turn.ts'

/** The size of a piece, in characters. */
const PIECE = 64 * 1024

interface JsonAnswer {
  readonly bytes: number
  readonly body: string | Readable
}

/** A short answer is one string. A long one is made in pieces, and other work can run after each. */
export async function jsonAnswer(answer: unknown): Promise<JsonAnswer> {
  const breath = othersTurn()
  const pieces: Buffer[] = []
  let text = ''
  for (const part of parts(answer)) {
    text += part
    if (text.length < PIECE) continue
    pieces.push(Buffer.from(text))
    text = ''
    await breath()
  }
  if (pieces.length === 0) return { bytes: Buffer.byteLength(text), body: text }
  if (text !== '') pieces.push(Buffer.from(text))
  return {
    bytes: pieces.reduce((sum, { length }) => sum + length, 0),
    body: Readable.from(pieces, { objectMode: false }),
  }
}

/** The JSON of a value in parts; each entry of a list is a part. */
function* parts(value: unknown): Generator<string> {
  const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isPlain || !Object.values(value).some(isLong)) {
    yield JSON.stringify(value) ?? 'null'
    return
  }
  let mark = '{'
  for (const [key, each] of Object.entries(value)) {
    const written = isLong(each) ? '' : JSON.stringify(each)
    if (written === undefined) continue
    yield `${mark}${JSON.stringify(key)}:${written}`
    mark = ','
    if (isLong(each)) yield* list(each)
  }
  yield '}'
}

function* list(items: readonly unknown[]): Generator<string> {
  let mark = '['
  for (const item of items) {
    yield mark
    // Entries may hold lists too, such as the routes of an edge.
    yield* parts(item)
    mark = ','
  }
  yield ']'
}

function isLong(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 1
}
