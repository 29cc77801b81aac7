/** Measures how long keep-alives take to the client and back; clients answer them in order (RFC 4254 §4). */
import type { Protocol } from 'ssh2'

/** The most unanswered keep-alives; a client that leaves more unanswered is no longer measured. */
const MAX_PENDING = 100

export class RoundTrips {
  readonly #protocol: Protocol
  readonly #sentAt: number[] = []
  #isLost = false
  #lastMs: number | undefined

  /** From here on nothing else may send global requests that expect an answer. */
  constructor(protocol: Protocol) {
    this.#protocol = protocol
    const send = protocol.ping.bind(protocol)
    protocol.ping = () => {
      this.#sent()
      send()
    }
    // Success and failure are both answers: clients do not know the request, and reply with failure.
    protocol._handlers.REQUEST_SUCCESS = () => this.#answered()
    protocol._handlers.REQUEST_FAILURE = () => this.#answered()
  }

  /** The last round trip, in milliseconds; undefined before the first. */
  get lastMs(): number | undefined {
    return this.#lastMs
  }

  /** Sends a keep-alive, unless one is waiting for its answer. */
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
