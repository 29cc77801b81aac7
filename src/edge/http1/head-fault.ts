/** Why a head, or what frames a body, is not taken. */

/** `version` and `expectation` are of requests alone. */
export type HeadFaultKind = 'malformed' | 'too_large' | 'version' | 'expectation'

export class HeadFault {
  readonly kind: HeadFaultKind
  /** For the log; never holds bytes from the wire. */
  readonly what: string

  constructor(kind: HeadFaultKind, what: string) {
    this.kind = kind
    this.what = what
  }
}

export function malformed(what: string): HeadFault {
  return new HeadFault('malformed', what)
}
