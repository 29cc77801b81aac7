/** Facts that an agent keeps for us and brings back: sealed, so that nobody else can have written or changed them. */

/** Encrypts and authenticates; `open` throws on what it did not seal. */
export interface Seal {
  seal(text: string): string
  open(text: string): string
}

/** What a fact is about: a token of one kind is worth nothing as one of another. */
type Kind = 'session' | 'bind'

type Facts = Readonly<Record<string, string | number>>

/** Longer than anything we seal, in characters. */
const MAX_SEALED = 4096

export function sealFacts(seal: Seal, kind: Kind, facts: Facts): string {
  return seal.seal(JSON.stringify({ kind, ...facts }))
}

/** The facts in `text`; undefined when they are not ours, of another kind, or damaged. */
export function openFacts(seal: Seal, kind: Kind, text: string): Readonly<Record<string, unknown>> | undefined {
  if (text === '' || text.length > MAX_SEALED) return undefined
  try {
    const facts: unknown = JSON.parse(seal.open(text))
    return isRecord(facts) && facts.kind === kind ? facts : undefined
  } catch {
    // From before a new key, or made up: agents send such a text for as long as they run, so it is no reason to fail.
    return undefined
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
