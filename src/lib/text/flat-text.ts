/** A copy of `text` to keep for long. */
export function flatText(text: string): string {
  // In V8 a slice keeps the whole original string alive, and a concatenation stays a tree of parts until it is read.
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
