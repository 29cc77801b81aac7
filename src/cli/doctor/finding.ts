/** What `postern doctor` found out about one thing. */

export interface Finding {
  /** What was looked at, such as `disk`. */
  readonly check: string
  /** `unknown`: it could not be looked at, which is no fault by itself. */
  readonly state: 'well' | 'to do' | 'unknown'
  /** What was seen. */
  readonly about: string
  /** What to do about it; empty when there is nothing. */
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
