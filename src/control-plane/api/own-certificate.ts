/** The certificate that the API presents: the one for the requested name, or else one of the server's own authority. */
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ServedCertificate } from '../../link/planes/plane-calls.ts'

/** Any certificate with its key, in PEM. */
type Pair = Pick<ServedCertificate, 'cert' | 'key'>

interface OwnCertificateOptions {
  /** Makes a certificate of the server's own authority. */
  readonly issue: () => Pair
  /** TLS versions and ciphers of every context. */
  readonly tls: SecureContextOptions
}

export class OwnCertificate {
  readonly #options: OwnCertificateOptions
  #byName: ReadonlyMap<string, ServedCertificate> = new Map()
  /** One context per certificate. */
  #contexts = new WeakMap<Pair, SecureContext>()
  #own: Pair

  constructor(options: OwnCertificateOptions) {
    this.#options = options
    this.#own = options.issue()
  }

  /** Replaces the certificates for names, by exact name or `*.…`. */
  replace(byName: ReadonlyMap<string, ServedCertificate>): void {
    this.#byName = byName
  }

  /** Makes a new certificate of the server's own authority, which lasts a year. */
  renew(): void {
    this.#own = this.#options.issue()
  }

  /** Served to clients that send no name, or one that has no certificate. */
  get own(): Pair {
    return this.#own
  }

  /** Never makes a certificate for the name, since strangers may send any. */
  contextFor(name: string): SecureContext {
    const wanted = name.toLowerCase().replace(/\.$/, '')
    const found = this.#byName.get(wanted) ?? this.#byName.get(`*${wanted.slice(wanted.indexOf('.'))}`)
    const pair: Pair = found ?? this.#own
    let context = this.#contexts.get(pair)
    if (!context) {
      context = createSecureContext({ ...this.#options.tls, cert: pair.cert, key: pair.key })
      this.#contexts.set(pair, context)
    }
    return context
  }
}
