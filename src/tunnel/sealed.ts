/** Facts that an agent keeps for us and brings back: sealed, so that nobody can forge or change them. */

import { isFirstForm } from '../lib/secrets/seal.ts'

/** Encrypts and authenticates; `open` throws unless the text was sealed for the same context. */
export interface Seal {
  seal(text: string, context: string): string
  open(text: string, context: string): string
  /** Opens texts of an earlier version, which were sealed without a context. */
  openFirstForm(text: string): string
}

/** The kind of a fact: a token of one kind is worthless as another. */
type Kind = 'session' | 'bind'

type Facts = Readonly<Record<string, string | number>>

/** Longer than anything we seal, in characters. */
const MAX_SEALED = 4096

export function sealFacts(seal: Seal, kind: Kind, facts: Facts): string {
  return seal.seal(JSON.stringify({ kind, ...facts }), contextOf(kind))
}

/** The facts in `text`; undefined when they are not ours, of another kind, or damaged. */
export function openFacts(seal: Seal, kind: Kind, text: string): Readonly<Record<string, unknown>> | undefined {
  if (text === '' || text.length > MAX_SEALED) return undefined
  try {
    // Agents keep their texts as long as they run, so texts of earlier versions still arrive. Those contain their kind,
    // and nothing else that was ever sealed is an object with a kind.
    const opened = isFirstForm(text) ? seal.openFirstForm(text) : seal.open(text, contextOf(kind))
    const facts: unknown = JSON.parse(opened)
    return isRecord(facts) && facts.kind === kind ? facts : undefined
  } catch {
    // From before a key rotation, or made up. Agents go on sending such a text, so it is not an error.
    return undefined
  }
}

function contextOf(kind: Kind): string {
  return `agents/${kind}`
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
