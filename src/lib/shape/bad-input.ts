/** An error for input that cannot be read: the fault of the sender, not a defect of ours. */

interface BadInputOptions {
  /** One word for what is wrong, for callers that distinguish such errors. */
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
