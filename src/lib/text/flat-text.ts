/**
 * A copy of `text` for strings that are kept for long. In V8 a slice keeps the whole string it was cut from alive, and a
 * concatenation stays a tree of parts until it is read.
 */
export function flatText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
