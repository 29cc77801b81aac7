/** Titles as they stand in the middle of a sentence: `Tunnel sessions` is written small, `TLS edges` is not. */
export function inSentence(title: string): string {
  return title.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}
