/** What is kept of the proof that a name belongs here: a fact beside the resources that hold the name. */

export interface NameProof {
  /** When it was seen last, in milliseconds since 1970. */
  readonly at: number
  readonly by: 'txt' | 'cname'
}

/** In place of a proof that is gone. */
export const LOST_PROOF = 'lost'

/** In place of a proof that was gone when an admin gave the name to something anew. */
export const VOUCHED = 'vouched'

/** The key of the fact for a name, normalised. */
export function proofKey(name: string): string {
  return `proven_name/${name}`
}

/** The proof that a fact holds, if it is one. */
export function readProof(fact: string | undefined): NameProof | undefined {
  // Written by us alone.
  return fact === undefined || fact === LOST_PROOF || fact === VOUCHED ? undefined : (JSON.parse(fact) as NameProof)
}
