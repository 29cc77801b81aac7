/** The parts of an HTTP/1 head that was kept, as text. */
import { isUtf8 } from 'node:buffer'

export interface HeadField {
  readonly name: string
  readonly value: string
}

/** All fields in their order. */
export function fieldsOf(head: Buffer): HeadField[] {
  const [, ...lines] = textOf(head).split('\r\n')
  const fields: HeadField[] = []
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.push({ name: line.slice(0, colon), value: line.slice(colon + 1).trim() })
  }
  return fields
}

/** The value of the first field of this name, which is given in lower case; `''` without one. */
export function fieldOf(head: Buffer, name: string): string {
  return fieldsOf(head).find((field) => field.name.toLowerCase() === name)?.value ?? ''
}

/** `200 OK` of a status line. */
export function statusText(head: Buffer): string {
  return /^HTTP\/\d\.\d ([^\r\n]*)/.exec(textOf(head))?.[1] ?? ''
}

export function protocolOf(head: Buffer): string {
  return /^HTTP\/\d\.\d/.exec(textOf(head))?.[0] ?? ''
}

export function isChunked(head: Buffer): boolean {
  return /chunked\s*$/i.test(fieldOf(head, 'transfer-encoding'))
}

/** Fields are bytes. Most are ASCII; what is not UTF-8 is shown as Latin-1. */
function textOf(head: Buffer): string {
  return head.toString(isUtf8(head) ? 'utf8' : 'latin1')
}
