/** An error for input that cannot be read: the sender's fault, as opposed to a defect of ours. */

export interface BadInputOptions {
  /** One word for what is wrong, for callers that tell such errors apart. */
  readonly reason?: string
  readonly cause?: unknown
}

/** The message can be shown to the sender. */
export class BadInput extends Error {
  /** `''` when no caller needs one. */
  readonly reason: string

  constructor(message: string, { reason = '', cause }: BadInputOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BadInput'
    this.reason = reason
  }
}
