/** Splits CEL source into tokens, just far enough to recognise strings, comments and brackets. */

export interface Token {
  readonly text: string
  readonly start: number
}

/** The tokens of `text` from `start`, without blanks and comments. */
export function* tokens(text: string, start = 0): Generator<Token> {
  const token = new RegExp(pattern, 'y')
  token.lastIndex = start
  for (let match = token.exec(text); match; match = token.exec(text)) {
    if (match.groups?.skip === undefined) yield { text: match[0], start: match.index }
  }
}

/** Whether a token is a quote that opens a string which is never closed. */
export function isOpenString(token: Token): boolean {
  return token.text === '"' || token.text === "'"
}

/** 1 for an opening bracket, -1 for a closing one, 0 for anything else. */
export function nesting(token: Token): number {
  if (token.text === '(' || token.text === '[' || token.text === '{') return 1
  return token.text === ')' || token.text === ']' || token.text === '}' ? -1 : 0
}

// CEL specification, "Syntax": STRING_LIT and BYTES_LIT, raw ones first since their backslashes mean nothing.
const pattern = [
  String.raw`(?<skip>\s+|//[^\n]*)`,
  String.raw`[bB]?[rR](?:"""[^]*?"""|'''[^]*?'''|"[^"\r\n]*"|'[^'\r\n]*')`,
  String.raw`[bB]?(?:"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?''')`,
  String.raw`[bB]?(?:"(?:\\[^\r\n]|[^"\\\r\n])*"|'(?:\\[^\r\n]|[^'\\\r\n])*')`,
  String.raw`\w+|&&|\|\||[=!<>]=`,
  '[^]',
].join('|')
