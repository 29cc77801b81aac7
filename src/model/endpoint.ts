/** A public address that an agent asks for: what its door asks of those who serve visitors. */
import type { TunnelPlan } from './edge-config.ts'

/** Options of one bind, far more than agents send: they are looked through by name. */
export const MAX_BIND_OPTIONS = 200

/** Already chosen and allowed by the ACL of the credential. */
export interface EndpointRequest {
  /** `ep_…` */
  readonly id: string
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  /** Normalised; for TCP what stands in the URL. */
  readonly host: string
  /** TCP alone. */
  readonly port: number | undefined
  /** The server chose the name or port, so one that somebody reserved is not to be had. */
  readonly isRandom?: boolean
  /** A rule of the ACL is about this very name, or a wildcard above it; needed below a wildcard that somebody holds (D66). */
  readonly isNamed?: boolean
  readonly tunnel: TunnelPlan
  /** Whose bind it is. */
  readonly credentialId: string
  /** The options of the bind, as the agent spelled them. */
  readonly opts: Readonly<Record<string, unknown>>
}

export interface OpenEndpoint {
  /** `https://name`, `tcp://host:port`, with the public port where it is not the usual one. */
  readonly url: string
  readonly hostport: string
  /** Reserved domain or reserved address that it stands on. */
  readonly domainId?: string
  readonly tcpAddrId?: string
  /** No new visitors; those that are there may go on. */
  close(): void
}

export interface Endpoints {
  /** Serves from the moment it resolves. */
  open(request: EndpointRequest): Promise<OpenEndpoint | BindRefusal>
}

/** Why an agent does not get what it asked for; `isTaken` tells that another name or port may be free. */
export class BindRefusal extends Error {
  /** The vendor's number, which SDKs look for. */
  readonly ngrok: number
  readonly isTaken: boolean

  constructor(ngrok: number, message: string, { isTaken = false }: { isTaken?: boolean } = {}) {
    super(message)
    this.name = 'BindRefusal'
    this.ngrok = ngrok
    this.isTaken = isTaken
  }
}
