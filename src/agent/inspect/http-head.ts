/** The parts of a kept HTTP/1 head, in which each character is a byte. */
import { isUtf8 } from 'node:buffer'

export interface HeadField {
  readonly name: string
  readonly value: string
}

/** All fields in their order. */
export function fieldsOf(head: string): HeadField[] {
  const [, ...lines] = textOf(head).split('\r\n')
  const fields: HeadField[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.push({ name: line.slice(0, colon), value: line.slice(colon + 1).trim() })
  }
  return fields
}

/** The value of the first field of this name, which is given in lower case; `''` without one. */
export function fieldOf(head: string, name: string): string {
  return fieldsOf(head).find((field) => field.name.toLowerCase() === name)?.value ?? ''
}

/** The values of all fields of this name, which is given in lower case, as one list. */
export function listOf(head: string, name: string): string {
  const found = fieldsOf(head).filter((field) => field.name.toLowerCase() === name)
  return found.map(({ value }) => value).join(', ')
}

/** The `200 OK` of a status line. */
export function statusText(head: string): string {
  return /^HTTP\/\d\.\d ([^\r\n]*)/.exec(textOf(head))?.[1] ?? ''
}

export function protocolOf(head: string): string {
  return /^HTTP\/\d\.\d/.exec(textOf(head))?.[0] ?? ''
}

export function isChunked(head: string): boolean {
  return /chunked\s*$/i.test(fieldOf(head, 'transfer-encoding'))
}

/** Decodes the bytes as UTF-8, or as Latin-1 if they are not UTF-8. */
function textOf(head: string): string {
  const bytes = Buffer.from(head, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : head
}
