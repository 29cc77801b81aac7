/** Facts that an agent keeps for us and brings back: sealed, so that nobody else can have written or changed them. */

import { isFirstForm } from '../lib/secrets/seal.ts'

/** Encrypts and authenticates; `open` throws on what it did not seal for the same context. */
export interface Seal {
  seal(text: string, context: string): string
  open(text: string, context: string): string
  /** Opens what an earlier version sealed, which had no context. */
  openFirstForm(text: string): string
}

/** What a fact is about: a token of one kind is worth nothing as one of another. */
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
    // Agents keep theirs for as long as they run, so those of earlier versions still come. They say their kind inside, and
    // nothing else that was ever sealed is an object with a kind.
    const opened = isFirstForm(text) ? seal.openFirstForm(text) : seal.open(text, contextOf(kind))
    const facts: unknown = JSON.parse(opened)
    return isRecord(facts) && facts.kind === kind ? facts : undefined
  } catch {
    // From before a new key, or made up: agents send such a text for as long as they run, so it is no reason to fail.
    return undefined
  }
}

function contextOf(kind: Kind): string {
  return `agents/${kind}`
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
