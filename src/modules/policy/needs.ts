/** How deep a policy looks into the traffic of its edge. */

import type { Needs } from '../module.ts'
import { BadExpression } from './engine/cel.ts'
import { type Token, tokens } from './engine/cel-tokens.ts'
import { pieces } from './engine/interpolation.ts'
import type { Policy } from './engine/policy-form.ts'
import { type ExpressionSource, sources } from './engine/sources.ts'

/**
 * the name that a visitor asks for is sent in the clear; all else of `conn.tls` is known only to the end of the
 * handshake. Used for TLS edges; on routes TLS always ends at the edge.
 */
export function policyNeeds(policy: Policy): Needs {
  if (!policy.enabled) return 'bytes'
  for (const source of sources(policy, '')) if (readsTls(source)) return 'plaintext'
  return 'bytes'
}

/**
 * Looks at the tokens only, which is cheap: this runs inside transactions, where CEL must not be parsed. An expression with
 * an unusual spelling may count as reading more.
 */
function readsTls({ kind, text }: ExpressionSource): boolean {
  if (kind === 'pattern' && !text.includes('${')) return false
  if (kind === 'condition' || kind === 'value' || kind === 'retry') return namesTls(text)
  try {
    for (const piece of pieces(text)) if ('expression' in piece && namesTls(piece.expression)) return true
    return false
  } catch (error) {
    // A template that cannot be read cannot run; `accept` refuses it.
    if (error instanceof BadExpression) return false
    throw error
  }
}

function namesTls(text: string): boolean {
  if (!text.includes('conn')) return false
  const words = [...tokens(text)]
  return words.some((word, i) => word.text === 'conn' && !isField(words, i) && isTls(path(words, i + 1)))
}

/** Whether the word at `i` is a field of the value before it. With nothing before the dot, it is the variable itself. */
function isField(words: readonly Token[], i: number): boolean {
  const before = words[i - 2]?.text ?? ''
  return words[i - 1]?.text === '.' && before !== 'in' && /[\w)\]}"'`]$/.test(before)
}

/** Reading all of `conn` or of `conn.tls` reads the handshake too. */
function isTls([first, second]: readonly string[]): boolean {
  if (first === undefined) return true
  return first === 'tls' && second !== 'sni'
}

/** The next two fields that are read from `i` on, if they are written plainly: `.tls.sni`, `["tls"]["sni"]`. */
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
