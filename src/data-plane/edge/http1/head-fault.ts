/** Why a head, or the framing of a body, is refused. */

/** `version` and `expectation` occur only in requests. */
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

export function malformedHead(what: string): HeadFault {
  return new HeadFault('malformed', what)
}
