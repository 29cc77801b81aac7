/** What was sent cannot be read: the sender's fault, and told apart from our own mistakes. */

/** The message can be shown to whoever sent it. */
export class BadInput extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'BadInput'
  }
}
