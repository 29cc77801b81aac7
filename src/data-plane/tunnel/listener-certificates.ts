/** Chooses the certificate that the agents' listener shows, by the name by which an agent reaches it. */
import type { SecureVersion } from 'node:tls'
import type { ListenerCertificate } from './acceptor.ts'
import type { AgentListener } from './agent-listener.ts'

/** The operator's settings. */
export interface ListenerTlsSettings {
  /** Names and addresses by which agents reach the server, in lower case. */
  readonly names: readonly string[]
  /** Whether agents are shown the certificate of the name that they ask for, if it has one. */
  readonly isPublic: boolean
  readonly tlsMinVersion: SecureVersion
}

interface ListenerCertificatesOptions {
  readonly settings: ListenerTlsSettings
  readonly authority: { issue(names: readonly string[]): ListenerCertificate }
  readonly certificates: {
    /** The certificate for a name, unless it is of our own authority. */
    findNamed(name: string): ListenerCertificate | undefined
    findOwn(name: string): ListenerCertificate
  }
  /** `known` resolves when uploaded certificates are known for the first time. */
  readonly uploaded: { readonly known: Promise<void> }
  /** Further names, of agent ingresses: whether agents are shown their certificates. */
  readonly ingresses: { get(name: string): { readonly isPublic: boolean } | undefined; readonly hasPublic: boolean }
}

/** How often the certificate of the listener is checked for renewal, in milliseconds; it lasts a year. */
const RENEWAL_LOOK_MS = 24 * 3_600_000

export class ListenerCertificates {
  readonly #options: ListenerCertificatesOptions
  #settings: ListenerTlsSettings
  #listener: Pick<AgentListener, 'useCertificate'> | undefined

  constructor(options: ListenerCertificatesOptions) {
    this.#options = options
    this.#settings = options.settings
  }

  /** The TLS options of a listener; `certificate` is for agents that send no name, or a name without a certificate. */
  shown() {
    const { names, tlsMinVersion } = this.#settings
    const certificate = this.#options.authority.issue(names)
    return { certificate, certificateFor: (name: string) => this.#certificateFor(name), tlsMinVersion }
  }

  /** Resolves when the right certificates are known: an agent that is shown a wrong one does not come back. */
  async ready(): Promise<void> {
    const { uploaded, ingresses } = this.#options
    if (this.#settings.isPublic || ingresses.hasPublic) await uploaded.known
  }

  /** Renews the certificate of a listener in time; returns a function that stops this. */
  keepUp(listener: Pick<AgentListener, 'useCertificate'>): () => void {
    this.#listener = listener
    const renewal = setInterval(() => this.#renew(), RENEWAL_LOOK_MS).unref()
    return () => clearInterval(renewal)
  }

  /** Applies other settings. */
  use(settings: ListenerTlsSettings): void {
    this.#settings = settings
    this.#renew()
  }

  #renew(): void {
    const { certificate, tlsMinVersion } = this.shown()
    this.#listener?.useCertificate(certificate, tlsMinVersion)
  }

  /** Undefined means the listener's own certificate. */
  #certificateFor(name: string): ListenerCertificate | undefined {
    const { certificates, ingresses } = this.#options
    const { isPublic, names } = this.#settings
    const named = isPublic ? certificates.findNamed(name) : undefined
    // D89: agents that were given `ca.pem` for a name of the settings trust nothing else, even if an ingress gets that name.
    if (named || names.includes(name)) return named
    const ingress = ingresses.get(name)
    return ingress && ((ingress.isPublic ? certificates.findNamed(name) : undefined) ?? certificates.findOwn(name))
  }
}
