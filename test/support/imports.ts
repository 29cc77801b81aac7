/** Finds what a TypeScript source imports, without a compiler: masks strings and comments, and searches the rest. */

export interface Import {
  readonly specifier: string
  /** `type` does not exist at run time; `dynamic` is `import()`, in code or in a type. */
  readonly kind: 'static' | 'type' | 'dynamic'
}

export interface Imports {
  readonly imports: readonly Import[]
  /** Whether there is an `import()` with a computed argument, so that its target is unknown. */
  readonly hidden: boolean
  /** Whether the file has nothing but imports and re-exports. */
  readonly barrel: boolean
}

const FROM =
  /(?<![.\w$])(import|export)\s*(\btype\b(?!\s*(?:,|from\b)))?[\w$*{},\s]*?\bfrom\s*"(\d+)"(?:\s*with\s*\{[^}]*\})?/g
const BARE = /(?<![.\w$])import\s*"(\d+)"/g
const CALL = /(?<![.\w$])import\s*\(\s*(?:"(\d+)")?/g
const LIST = /(?<![.\w$])export\s*(?:type\s*)?\{[^}]*\}/g

export function findImports(source: string): Imports {
  const { code, strings } = mask(source)
  const named = (index: string | undefined) => strings[Number(index)] ?? ''
  const imports: Import[] = []
  for (const [, , type, index] of code.matchAll(FROM)) {
    imports.push({ specifier: named(index), kind: type ? 'type' : 'static' })
  }
  for (const [, index] of code.matchAll(BARE)) imports.push({ specifier: named(index), kind: 'static' })
  let hidden = false
  for (const [, index] of code.matchAll(CALL)) {
    if (index === undefined) hidden = true
    else imports.push({ specifier: named(index), kind: 'dynamic' })
  }
  const rest = code.replaceAll(FROM, '').replaceAll(BARE, '').replaceAll(LIST, '')
  return { imports, hidden, barrel: /(?<![.\w$])export\b/.test(code) && /^[\s;]*$/.test(rest) }
}

/** The code with comments, templates and regular expressions blanked, and each string replaced by its number. */
function mask(source: string): { code: string; strings: string[] } {
  const strings: string[] = []
  /** Open braces inside each `${` we are in. */
  const templates: number[] = []
  let code = ''
  let at = 0
  const skip = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const found = pattern.exec(source)?.[0] ?? ''
    at += found.length
    return found
  }
  while (at < source.length) {
    code += skip(/[^'"`/{}]*/y)
    const comment = skip(/\/\/.*|\/\*[\s\S]*?\*\//y)
    if (comment !== '') {
      code += ' '
      continue
    }
    const string = skip(/'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y)
    if (string !== '') {
      code += `"${strings.push(string.slice(1, -1)) - 1}"`
      continue
    }
    if (source[at] === '/' && startsValue(code) && skip(/\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y) !== '') {
      code += '0'
      continue
    }
    const char = source[at++] ?? ''
    const depth = templates.at(-1)
    if (char === '`' || (char === '}' && depth === 0)) {
      if (char === '}') templates.pop()
      // A template is one value, even when `${}` splits it into pieces.
      const piece = skip(/(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y)
      if (piece.endsWith('${')) templates.push(0)
      code += char === '`' ? (piece.endsWith('${') ? '(' : '0') : piece.endsWith('${') ? ',' : ')'
      continue
    }
    if (depth !== undefined && char === '{') templates[templates.length - 1] = depth + 1
    if (depth !== undefined && char === '}') templates[templates.length - 1] = depth - 1
    code += char
  }
  return { code, strings }
}

/** Whether a slash after `code` begins a regular expression rather than being a division. */
function startsValue(code: string): boolean {
  return /(?:^|[^\w$)\]"\s]|\b(?:return|typeof|case|in|of|await|yield|void|do|else))\s*$/.test(code.slice(-20))
}
