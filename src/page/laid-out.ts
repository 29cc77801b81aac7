/** The text of a body as people read it. */

/** Larger bodies are not laid out, in characters. */
const MAX_LAID_OUT = 500_000

/** Nor are deeper ones: each line begins with as many spaces as it is deep, so depth would cost its square. */
const MAX_DEPTH = 100

/** A string, a sign, or a number or word. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/** JSON with a line for each field; anything else as it is. */
export function laidOut(content: string): string {
  if (content.length > MAX_LAID_OUT || !/^\s*[{[]/.test(content)) return content
  try {
    JSON.parse(content)
  } catch {
    return content
  }
  return withLines(content.match(TOKEN) ?? []) ?? content
}

/**
 * Made of the tokens as they came: a number with many digits and a key that is there twice must not change. Undefined when
 * they are too deep.
 */
function withLines(tokens: readonly string[]): string | undefined {
  const parts: string[] = []
  let depth = 0
  const newLine = (): void => void parts.push('\n', '  '.repeat(depth))
  for (const [i, token] of tokens.entries()) {
    const isAfterOpening = isOpening(tokens[i - 1])
    const isClosing = token === '}' || token === ']'
    if (isClosing) depth--
    if (isClosing !== isAfterOpening) newLine()
    parts.push(token)
    if (isOpening(token)) {
      depth++
      if (depth > MAX_DEPTH) return undefined
    } else if (token === ',') newLine()
    else if (token === ':') parts.push(' ')
  }
  return parts.join('')
}

function isOpening(token: string | undefined): boolean {
  return token === '{' || token === '['
}
