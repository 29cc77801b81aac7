/** Why a call to another process or node got no answer. */

export class LinkFault extends Error {
  /**
   * `unreachable`: it was not sent. `closed`: the link broke; `timeout`: no answer came in time; after either, the call may have
   * been carried out. `failed`: the other side says so. `invalid`: the call or its answer is too large or not plain.
   */
  readonly reason: 'unreachable' | 'closed' | 'timeout' | 'failed' | 'invalid'

  constructor(reason: LinkFault['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LinkFault'
    this.reason = reason
  }
}

/** The fault of a call of that name. */
export function noAnswerFault(reason: 'closed' | 'timeout', name: string): LinkFault {
  const what = reason === 'closed' ? `the link closed before ${name} was answered` : `${name} was not answered in time`
  return new LinkFault(reason, what)
}
