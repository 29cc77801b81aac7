/** Facts that an agent keeps for the server and brings back, sealed so that nobody can forge or change them. */

/** Encrypts and authenticates; `open` throws unless the text was sealed for the same context. */
export interface Seal {
  seal(text: string, context: string): string
  open(text: string, context: string): string
  /** Opens a text that an earlier version sealed with another key; undefined when it is not ours. */
  readonly openFormer?: ((text: string, context: string) => Promise<string | undefined>) | undefined
}

/** The kind of a fact: a token of one kind is worthless as another. */
type Kind = 'session' | 'bind'

type Facts = Readonly<Record<string, string | number>>

/** Most characters of a sealed text; none of ours is longer. */
const MAX_SEALED = 4096

export function sealFacts(seal: Seal, kind: Kind, facts: Facts): string {
  return seal.seal(JSON.stringify({ kind, ...facts }), contextOf(kind))
}

/** The facts in `text`; undefined when they are not ours, of another kind, or damaged. */
export async function openFacts(
  seal: Seal,
  kind: Kind,
  text: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (text === '' || text.length > MAX_SEALED) return undefined
  const opened = await openText(seal, text, contextOf(kind))
  if (opened === undefined) return undefined
  try {
    const facts: unknown = JSON.parse(opened)
    // Texts of the first version contain their kind, and nothing else that was ever sealed is an object with a kind.
    return isRecord(facts) && facts.kind === kind ? facts : undefined
  } catch {
    return undefined
  }
}

/** Agents keep their texts as long as they run, so texts of earlier versions still arrive. */
async function openText(seal: Seal, text: string, context: string): Promise<string | undefined> {
  try {
    return seal.open(text, context)
  } catch {
    // From before a key rotation, or made up. Agents keep sending such a text, so it is not an error.
    return seal.openFormer?.(text, context).catch(() => undefined)
  }
}

function contextOf(kind: Kind): string {
  return `agents/${kind}`
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
