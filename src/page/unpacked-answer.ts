/** Answers that were sent compressed, as they were before. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'

/** The most that is unpacked, in bytes: a few bytes may become gigabytes. */
const MAX_UNPACKED = 1024 * 1024

/** Codings that every browser unpacks, by what `Content-Encoding` calls them. */
const codings: ReadonlyMap<string, 'gzip' | 'deflate'> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
])

/** Of a body that was unpacked, beside its content. */
export interface UnpackedFrom {
  readonly coding: string
  /** Of the content, in bytes. */
  readonly size: number
  /** Whether there was more. */
  readonly isCut: boolean
}

/** The exchange with the text of its answer, and `unpacked_from` beside it; as it was where there is none. */
export async function withUnpackedAnswer(exchange: ListedRow): Promise<ListedRow> {
  const { response } = exchange
  if (!isRecord(response) || !isRecord(response.body) || response.body.encoding !== 'base64') return exchange
  const coding = codings.get(contentCoding(response))
  if (coding === undefined) return exchange
  const { bytes, isCut } = await unpack(textIn(response.body.content), coding)
  const content = textOf(bytes, isCut)
  if (content === undefined || content === '') return exchange
  const unpacked_from: UnpackedFrom = { coding, size: bytes.length, isCut }
  return {
    ...exchange,
    response: { ...response, body: { ...response.body, encoding: 'text', content, unpacked_from } },
  }
}

function contentCoding({ headers }: ListedRow): string {
  const all = Array.isArray(headers) ? headers.filter(isRecord) : []
  const found = all.filter(({ name }) => textIn(name).toLowerCase() === 'content-encoding')
  return found.map(({ value }) => textIn(value).trim().toLowerCase()).join(',')
}

/** As much as there is before the end, the bound or a fault: a body may not have been kept whole. */
async function unpack(base64: string, coding: 'gzip' | 'deflate'): Promise<{ bytes: Uint8Array; isCut: boolean }> {
  const packed = Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream(coding)).getReader()
  const bytes = new Uint8Array(MAX_UNPACKED)
  let size = 0
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return { bytes: bytes.subarray(0, size), isCut: false }
      const room = value.subarray(0, MAX_UNPACKED - size)
      bytes.set(room, size)
      size += room.length
      if (room.length < value.length) break
    }
    await reader.cancel()
  } catch {
    // What came before the fault counts.
  }
  return { bytes: bytes.subarray(0, size), isCut: true }
}

/** Undefined for what is no text. */
function textOf(bytes: Uint8Array, isCut: boolean): string | undefined {
  try {
    // Of a text that is cut, the last character may be a part.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut })
  } catch {
    return undefined
  }
}
