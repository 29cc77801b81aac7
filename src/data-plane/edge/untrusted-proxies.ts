/** Notices a proxy in front of the server that is not in `--trusted-proxies`: one address sends forwarding headers all the time (D107). */
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'

/** Addresses that are counted; beyond that, the one with the fewest requests makes room. */
const MAX_ADDRESSES = 256

/** An address is judged after each so many of its requests with such headers. */
const JUDGED_AFTER = 100

/** The part of all visitors' requests since the last judgement that must have come from it. */
const LEAST_PART = 1 / 2

interface Sender {
  readonly address: string
  /** Its requests with such headers. */
  requests: number
  /** The requests of all visitors when it was last judged. */
  total: number
  isProxy: boolean
}

interface UntrustedProxiesOptions {
  readonly log: Logger
  /** How many requests of visitors there were, with such headers or not. */
  readonly total: () => number
}

export class UntrustedProxies {
  readonly #total: () => number
  readonly #lines: MinuteLog<{ readonly address: string }>
  readonly #senders = new Map<string, Sender>()

  constructor({ log, total }: UntrustedProxiesOptions) {
    this.#total = total
    this.#lines = new MinuteLog((fields, count) =>
      log.warn(
        { ...fields, count },
        'most requests come from one address with headers of a proxy, which are removed; if it is yours, let it send a PROXY header and add it to --trusted-proxies',
      ),
    )
  }

  /** A request from an address that is not trusted had such headers. */
  saw(address: string): void {
    const sender = this.#senders.get(address) ?? this.#add(address)
    sender.requests++
    if (sender.requests % JUDGED_AFTER !== 0) return
    const total = this.#total()
    const isProxy = JUDGED_AFTER >= (total - sender.total) * LEAST_PART
    if (isProxy && !sender.isProxy) this.#lines.note({ address })
    sender.isProxy = isProxy
    sender.total = total
  }

  /** Those that seem to be proxies, with their requests. */
  get found(): { readonly address: string; readonly requests: number }[] {
    return [...this.#senders.values()].flatMap(({ address, requests, isProxy }) =>
      isProxy ? [{ address, requests }] : [],
    )
  }

  close(): void {
    this.#lines.close()
  }

  #add(address: string): Sender {
    if (this.#senders.size >= MAX_ADDRESSES) {
      const least = [...this.#senders.values()].reduce((a, b) => (b.requests < a.requests ? b : a))
      this.#senders.delete(least.address)
    }
    const sender = { address, requests: 0, total: this.#total(), isProxy: false }
    this.#senders.set(address, sender)
    return sender
  }
}
