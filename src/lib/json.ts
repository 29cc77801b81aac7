/** Reads JSON from outside strictly: UTF-8, no duplicate keys, no `__proto__`, no NUL, bounded depth. */

/** JSON that we do not take; the message can be shown to whoever sent it. */
export class BadJson extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadJson'
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses `bytes` as one JSON value; throws `BadJson`. */
export function parseJson(bytes: Uint8Array, { maxDepth }: { maxDepth: number }): unknown {
  const text = decode(bytes)
  boundDepth(text, maxDepth)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new BadJson(`the body is not JSON: ${where(error, text)}`)
  }
  refuseDuplicates(text)
  refuseStrings(value)
  return value
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadJson('the body is not well-formed UTF-8')
  }
}

/** V8 quotes the text around an error, which may hold a secret; only the place is passed on. */
function where(error: unknown, text: string): string {
  const at = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined
  if (at === undefined) return text.trim() === '' ? 'it is blank' : 'it ends too early'
  const before = text.slice(0, Number(at))
  const line = before.split('\n').length
  return `unexpected character at line ${line}, column ${before.length - before.lastIndexOf('\n')}`
}

function boundDepth(text: string, maxDepth: number): void {
  let depth = 0
  for (const [token] of text.matchAll(STRUCTURE)) {
    if (token === '{' || token === '[') {
      depth++
      if (depth > maxDepth) throw new BadJson(`the body is nested deeper than ${maxDepth} levels`)
    } else if (token === '}' || token === ']') depth--
  }
}

/** Strings, so that brackets inside them are passed over, and the marks that nest and separate. */
const STRUCTURE = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gsu

/** Runs on text that is known to be JSON: a string before a colon is a key. */
function refuseDuplicates(text: string): void {
  const open: (Set<string> | null)[] = []
  let string = ''
  for (const [token] of text.matchAll(STRUCTURE)) {
    if (token === '{') open.push(new Set())
    else if (token === '[') open.push(null)
    else if (token === '}' || token === ']') open.pop()
    else if (token === ':') {
      const key: string = string.includes('\\') ? JSON.parse(string) : string.slice(1, -1)
      if (key === '__proto__') throw new BadJson('the key `__proto__` is not allowed')
      const keys = open.at(-1)
      if (keys?.has(key)) throw new BadJson(`the key ${JSON.stringify(key.slice(0, 100))} stands twice in one object`)
      keys?.add(key)
    } else if (token.startsWith('"')) string = token
  }
}

function refuseStrings(value: unknown): void {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw new BadJson('a string in the body contains a NUL character')
    if (!value.isWellFormed()) throw new BadJson('a string in the body is not well-formed Unicode')
  } else if (Array.isArray(value)) value.forEach(refuseStrings)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) {
      refuseStrings(key)
      refuseStrings(each)
    }
  }
}
