/** The result of one check of `postern doctor`. */

export interface Finding {
  /** What was checked, such as `disk`. */
  readonly check: string
  /** `unknown`: it could not be checked, which is not a problem by itself. */
  readonly state: 'well' | 'to do' | 'unknown'
  /** What was seen. */
  readonly about: string
  /** What to do about it; may be empty. */
  readonly next: string
}

export function well(check: string, about: string): Finding {
  return { check, state: 'well', about, next: '' }
}

export function toDo(check: string, about: string, next: string): Finding {
  return { check, state: 'to do', about, next }
}

export function unknown(check: string, about: string, next = ''): Finding {
  return { check, state: 'unknown', about, next }
}
