/** Which certificate the API shows of itself: that of the name it is asked for, else one of the server's own authority. */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ServedCertificate } from '../planes/port.ts'

/** Any certificate with its key, in PEM. */
type Pair = Pick<ServedCertificate, 'cert' | 'key'>

export interface OwnCertificateOptions {
  /** Makes a certificate of the server's own authority. */
  readonly issue: () => Pair
  /** What every context has: versions and ciphers. */
  readonly tls: SecureContextOptions
}

export class OwnCertificate {
  readonly #options: OwnCertificateOptions
  #byName: ReadonlyMap<string, ServedCertificate> = new Map()
  /** Made once for each certificate. */
  #contexts = new WeakMap<Pair, SecureContext>()
  #own: Pair

  constructor(options: OwnCertificateOptions) {
    this.#options = options
    this.#own = options.issue()
  }

  /** Other certificates, by exact name or `*.…`, count from here on. */
  replace(byName: ReadonlyMap<string, ServedCertificate>): void {
    this.#byName = byName
  }

  /** Makes a new one of the server's own authority: it lasts a year. */
  renew(): void {
    this.#own = this.#options.issue()
  }

  /** For whoever asks for no name, or for one that has no certificate. */
  get own(): Pair {
    return this.#own
  }

  /** No certificate is made for a name that only a stranger has thought of. */
  contextFor(name: string): SecureContext {
    const asked = name.toLowerCase().replace(/\.$/, '')
    const found = this.#byName.get(asked) ?? this.#byName.get(`*${asked.slice(asked.indexOf('.'))}`)
    const pair: Pair = found ?? this.#own
    let context = this.#contexts.get(pair)
    if (!context) {
      context = createSecureContext({ ...this.#options.tls, cert: pair.cert, key: pair.key })
      this.#contexts.set(pair, context)
    }
    return context
  }
}
