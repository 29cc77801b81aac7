/** Replaces what a regular expression matches, with `$1` in the replacement for its groups. */
import { RE2JS } from 're2js'

/** Compiles a pattern that was checked before (`pattern.ts`). Callers of the result must bound the length of `text`. */
export function compileReplacement(pattern: string): (text: string, replacement: string) => string {
  const compiled = RE2JS.compile(pattern)
  const groups = compiled.groupCount()
  return (text, replacement) => {
    const matcher = compiled.matcher(text)
    let replaced = ''
    let at = 0
    while (matcher.find()) {
      replaced += text.slice(at, matcher.start()) + fillGroups(replacement, groups, (i) => matcher.group(i) ?? '')
      at = matcher.end()
    }
    return replaced + text.slice(at)
  }
}

/** Fills in `$1`, `${1}` and `$$`; a group that the pattern does not have is empty. */
function fillGroups(replacement: string, groups: number, group: (i: number) => string): string {
  return replacement.replace(
    /\$(?:(\$)|(\d{1,2})|\{(\d{1,2})\})/g,
    (_, dollar?: string, bare?: string, braced?: string) => {
      if (dollar !== undefined) return '$'
      const i = Number(bare ?? braced)
      return i <= groups ? group(i) : ''
    },
  )
}
