/** The stored proof that a name belongs here: a fact beside the resources that hold the name. */

export interface NameProof {
  /** When the record was last seen, in milliseconds since 1970. */
  readonly at: number
  readonly by: 'txt' | 'cname'
}

/** Stored instead of a proof that is gone. */
export const LOST_PROOF = 'lost'

/** Stored instead of `LOST_PROOF` once an admin gives the name to a resource again. */
export const VOUCHED = 'vouched'

/** The key of the fact for a name, normalised. */
export function proofKey(name: string): string {
  return `proven_name/${name}`
}

/** The proof that a fact holds, if it is one. */
export function readProof(fact: string | undefined): NameProof | undefined {
  // Only this program writes it, so it is not checked.
  return fact === undefined || fact === LOST_PROOF || fact === VOUCHED ? undefined : (JSON.parse(fact) as NameProof)
}
