/** Formats the text of a body for reading. */

/** Larger bodies are not formatted, in characters. */
const MAX_LAID_OUT = 500_000

/** Nor is deeper JSON: lines are indented by their depth, so the output would grow with its square. */
const MAX_DEPTH = 100

/** A string, a punctuation mark, or a number or word. */
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
 * Made of the original tokens, so that long numbers and duplicate keys stay as they are. Undefined when nested
 * too deep.
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
