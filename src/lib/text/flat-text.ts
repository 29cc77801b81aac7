/**
 * The same text in memory of its own, for what is kept for long: a part of a text keeps the whole of it alive, and one
 * that was put together is put together anew by each who reads it.
 */
export function flatText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
