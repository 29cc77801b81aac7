/** Replaces what a regular expression matches, with `$1` in the replacement for its groups. */
import { RE2JS } from 're2js'

/** Pays for what is written, before it is; throws when it cannot. */
interface Payer {
  write(characters: number): void
}

/**
 * Compiles a pattern that was checked before (`pattern.ts`). Callers of the result must bound the length of `text`; it throws
 * when its own is over `most`.
 */
export function compileReplacement(
  pattern: string,
  most: number,
): (text: string, replacement: string, payer: Payer) => string {
  const compiled = RE2JS.compile(pattern)
  const groups = compiled.groupCount()
  return (text, replacement, payer) => {
    const matcher = compiled.matcher(text)
    let replaced = ''
    let at = 0
    while (matcher.find()) {
      payer.write(matcher.start() - at + replacement.length)
      replaced += text.slice(at, matcher.start())
      replaced += fillGroups(replacement, groups, (i) => {
        const group = matcher.group(i) ?? ''
        payer.write(group.length)
        return group
      })
      at = matcher.end()
      if (replaced.length > most) break
    }
    if (replaced.length + text.length - at > most) throw new Error(`a text would be longer than ${most} characters`)
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
