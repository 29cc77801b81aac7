/** Titles in the middle of a sentence: `Tunnel sessions` loses its capital, `TLS edges` does not. */
export function inSentence(title: string): string {
  return title.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}
