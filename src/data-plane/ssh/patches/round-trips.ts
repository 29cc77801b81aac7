/** Measures how long keep-alives take to the client and back; clients answer them in order (RFC 4254 §4). */
import type { Protocol } from 'ssh2'

/** The most unanswered keep-alives; a client that leaves more unanswered is no longer measured. */
const MAX_PENDING = 100

export class RoundTrips {
  readonly #protocol: Protocol
  readonly #bytesOut: () => number
  /** Keep-alives without an answer: when each was sent, and how many bytes before it. */
  readonly #pending: { readonly sentAt: number; readonly outBefore: number }[] = []
  #outProven = 0
  #isLost = false
  #lastMs: number | undefined

  /** `bytesOut`: how many bytes were sent so far. From here on nothing else may send global requests that expect an answer. */
  constructor(protocol: Protocol, bytesOut: () => number) {
    this.#protocol = protocol
    this.#bytesOut = bytesOut
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

  /** Bytes sent since the last keep-alive that was answered: at most as many are still on their way. */
  get unansweredBytes(): number {
    return this.#bytesOut() - this.#outProven
  }

  /** Sends a keep-alive, unless one is waiting for its answer. */
  measure(): void {
    const { _kexinit: isExchangingKeys } = this.#protocol
    if (this.#pending.length === 0 && !this.#isLost && isExchangingKeys === undefined) this.#protocol.ping()
  }

  #sent(): void {
    if (this.#pending.length >= MAX_PENDING) this.#isLost = true
    if (!this.#isLost) this.#pending.push({ sentAt: performance.now(), outBefore: this.#bytesOut() })
  }

  #answered(): void {
    const answered = this.#pending.shift()
    if (!answered) return
    this.#outProven = answered.outBefore
    if (!this.#isLost) this.#lastMs = performance.now() - answered.sentAt
  }
}
