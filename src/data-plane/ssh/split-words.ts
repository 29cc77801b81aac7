/** Splits a command into words as a shell does: quotes keep spaces, a backslash keeps the next character. */

/** Undefined when a quote is not closed. */
export function splitWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (quote === "'" ? char !== "'" : quote === '"' && char !== '"') {
      const isEscape = quote === '"' && char === '\\' && /["\\]/.test(text.charAt(at + 1))
      word += isEscape ? text.charAt(++at) : char
    } else if (quote !== '') quote = ''
    else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + (char === '\\' ? text.charAt(++at) : char)
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}
