/** How deep a policy looks into the traffic of its edge. */

import { BadExpression } from '../../policy/cel.ts'
import type { Policy } from '../../policy/form.ts'
import { pieces } from '../../policy/interpolation.ts'
import { type Source, sources } from '../../policy/sources.ts'
import { type Token, tokens } from '../../policy/tokens.ts'
import type { Needs } from '../module.ts'

/**
 * the name a visitor asks for stands in the open, all else of `conn.tls` takes part in the handshake.
 * Asked of TLS edges; what a route does with requests needs no telling.
 */
export function policyNeeds(policy: Policy): Needs {
  if (!policy.enabled) return 'bytes'
  for (const source of sources(policy, '')) if (readsTls(source)) return 'plaintext'
  return 'bytes'
}

/**
 * Told from the words alone, and so at little cost: this is asked inside transactions, where CEL must not be parsed. An
 * expression that is spelled in an unusual way counts as one that reads more.
 */
function readsTls({ kind, text }: Source): boolean {
  if (kind === 'pattern' && !text.includes('${')) return false
  if (kind === 'condition' || kind === 'value' || kind === 'retry') return namesTls(text)
  try {
    for (const piece of pieces(text)) if ('expression' in piece && namesTls(piece.expression)) return true
    return false
  } catch (error) {
    // What cannot be read cannot run, and is for `accept` to refuse.
    if (error instanceof BadExpression) return false
    throw error
  }
}

function namesTls(text: string): boolean {
  if (!text.includes('conn')) return false
  const words = [...tokens(text)]
  return words.some((word, i) => word.text === 'conn' && !isField(words, i) && isTls(path(words, i + 1)))
}

/** Whether the word at `i` is a field of what stands before it; a dot after nothing names the variable itself. */
function isField(words: readonly Token[], i: number): boolean {
  const before = words[i - 2]?.text ?? ''
  return words[i - 1]?.text === '.' && before !== 'in' && /[\w)\]}"'`]$/.test(before)
}

/** The whole of `conn` or of `conn.tls` holds what is inside it. */
function isTls([first, second]: readonly string[]): boolean {
  if (first === undefined) return true
  return first === 'tls' && second !== 'sni'
}

/** The two fields that are read of a variable from `i` on, as far as they are plain: `.tls.sni`, `["tls"]["sni"]`. */
function path(words: readonly Token[], i: number): readonly string[] {
  const text = (at: number): string => words[at]?.text ?? ''
  const names: string[] = []
  for (let at = i; names.length < 2; ) {
    if (text(at) === '.' && /^\w+$/.test(text(at + 1)) && text(at + 2) !== '(') {
      names.push(text(at + 1))
      at += 2
    } else if (text(at) === '[' && /^["']\w+["']$/.test(text(at + 1)) && text(at + 2) === ']') {
      names.push(text(at + 1).slice(1, -1))
      at += 3
    } else break
  }
  return names
}
