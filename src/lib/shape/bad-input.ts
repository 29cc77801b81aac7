/** What was sent cannot be read: the sender's fault, and told apart from our own mistakes. */

export interface BadInputOptions {
  /** One word for what is wrong, where a caller tells such faults apart. */
  readonly reason?: string
  readonly cause?: unknown
}

/** The message can be shown to whoever sent it. */
export class BadInput extends Error {
  /** `''` when nobody tells it apart from others. */
  readonly reason: string

  constructor(message: string, { reason = '', cause }: BadInputOptions = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BadInput'
    this.reason = reason
  }
}
