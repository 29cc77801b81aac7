/** How long keep-alives take to the client and back: each is answered, in the order in which they were sent (RFC 4254 §4). */
import type { Protocol } from 'ssh2'

/** Keep-alives whose answers are waited for; who leaves more unanswered is not measured any more. */
const MAX_PENDING = 100

export class RoundTrips {
  readonly #protocol: Protocol
  readonly #sentAt: number[] = []
  #isLost = false
  #lastMs: number | undefined

  /** From here on nothing else may send global requests that want an answer. */
  constructor(protocol: Protocol) {
    this.#protocol = protocol
    const send = protocol.ping.bind(protocol)
    protocol.ping = () => {
      this.#sent()
      send()
    }
    // Yes or no, both are answers; clients do not know the request and say no.
    protocol._handlers.REQUEST_SUCCESS = () => this.#answered()
    protocol._handlers.REQUEST_FAILURE = () => this.#answered()
  }

  /** The last one, in milliseconds; undefined while there was none. */
  get lastMs(): number | undefined {
    return this.#lastMs
  }

  /** Sends a keep-alive, unless one is under way. */
  measure(): void {
    const { _kexinit: isExchangingKeys } = this.#protocol
    if (this.#sentAt.length === 0 && !this.#isLost && isExchangingKeys === undefined) this.#protocol.ping()
  }

  #sent(): void {
    if (this.#sentAt.length >= MAX_PENDING) this.#isLost = true
    if (!this.#isLost) this.#sentAt.push(performance.now())
  }

  #answered(): void {
    const sentAt = this.#sentAt.shift()
    if (sentAt !== undefined && !this.#isLost) this.#lastMs = performance.now() - sentAt
  }
}
