/** Replaces what a regular expression matches, with `$1` in the replacement for its groups. */
import { RE2JS } from 're2js'

/** Pays for what is written, before it is; throws when it cannot. */
interface Payer {
  write(characters: number): void
}

/** What it takes to find a group of a match is paid for like writing this many characters. */
const GROUP_CHARACTERS = 20

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
    const pieces = piecesOf(replacement, groups)
    let replaced = ''
    let at = 0
    while (matcher.find()) {
      payer.write(matcher.start() - at + replacement.length)
      replaced += text.slice(at, matcher.start())
      for (const piece of pieces) {
        const written = typeof piece === 'string' ? piece : (matcher.group(piece) ?? '')
        if (typeof piece === 'number') payer.write(written.length + GROUP_CHARACTERS)
        replaced += written
      }
      at = matcher.end()
      if (replaced.length > most) break
    }
    if (replaced.length + text.length - at > most) throw new Error(`a text would be longer than ${most} characters`)
    return replaced + text.slice(at)
  }
}

/** A replacement as texts and numbers of groups: `$1`, `${1}` and `$$`; a group that the pattern does not have is empty. */
function piecesOf(replacement: string, groups: number): (string | number)[] {
  const pieces: (string | number)[] = []
  let at = 0
  for (const { 0: found, 1: dollar, 2: bare, 3: braced, index } of replacement.matchAll(
    /\$(?:(\$)|(\d{1,2})|\{(\d{1,2})\})/g,
  )) {
    pieces.push(replacement.slice(at, index))
    const group = Number(bare ?? braced)
    if (dollar !== undefined) pieces.push('$')
    else if (group <= groups) pieces.push(group)
    at = index + found.length
  }
  return [...pieces, replacement.slice(at)].filter((piece) => piece !== '')
}
