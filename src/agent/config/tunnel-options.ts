/** The options of a tunnel, from a file, from flags or from code, and the plan that is made of them. */

import { readDescription, readKind } from '../../link/options/described-tunnel.ts'
import type { TunnelKind } from '../../link/options/endpoint-options.ts'
import { certificatesPem, type ReadText } from '../../link/options/file-values.ts'
import type { OptionReader } from '../../link/options/option-reader.ts'
import { type UpstreamTls, upstreamDialer } from '../dial-upstream.ts'
import type { ForwardTarget } from '../forward.ts'
import type { AgentTunnelPlan } from '../tunnel.ts'
import { parseUpstream, type Upstream } from '../upstream.ts'

/** The keys of a tunnel, the same in `postern-agent.yml` and in code. Where a file is expected, its content may be given. */
export interface TunnelOptions {
  /** Where the service is: `3000`, `host:3000`, `https://host`, `unix:/path`. */
  readonly addr?: string | number | undefined
  /** The protocol of visitors; `http` by default, which includes HTTPS. */
  readonly proto?: 'http' | 'tcp' | 'tls' | undefined
  /** For http: the schemes of the address, `https` by default. */
  readonly schemes?: readonly ('http' | 'https')[] | undefined
  /** The full address to request, such as `https://app.example.com` or `tcp://example.com:20001`. */
  readonly url?: string | undefined
  readonly domain?: string | undefined
  readonly hostname?: string | undefined
  /** A name under the domain of the server. */
  readonly subdomain?: string | undefined
  /** For tcp: `host:port` to request. */
  readonly remote_addr?: string | undefined
  /** Shares the address with other tunnels of the same owner that also set this and have the same guards. */
  readonly pooling?: boolean | undefined
  /** Instead of an address: edges find the tunnel by these labels. */
  readonly labels?: Readonly<Record<string, string>> | readonly string[] | undefined
  /** Shown in the API. */
  readonly metadata?: string | undefined
  /** What the tunnel is for. */
  readonly description?: string | undefined
  /** The `Host` header that the service gets: a name, or `rewrite` for the host of `addr`. */
  readonly host_header?: string | undefined
  /** Version of the PROXY header that is sent to the service first. */
  readonly proxy_proto?: 0 | 1 | 2 | undefined
  /** The protocol of the service, if it is not HTTP/1.1. */
  readonly app_protocol?: 'http1' | 'http2' | undefined
  readonly upstream_tls?: {
    /** Checks the certificate of a service with `https` or `tls`; off by default. */
    readonly verify?: boolean | undefined
    /** CAs to trust for that certificate; turns the check on. */
    readonly ca?: string | undefined
    readonly server_name?: string | undefined
  }
  /** Whether requests are shown in the status view; on by default. */
  readonly inspect?: boolean | undefined
  readonly basic_auth?: readonly string[] | undefined
  /** Addresses in CIDR notation. */
  readonly ip_restriction?: { readonly allow: readonly string[]; readonly deny?: readonly string[] } | undefined
  readonly request_headers?: HeaderRules | undefined
  readonly response_headers?: HeaderRules | undefined
  readonly compression?: boolean | undefined
  /** Share of failed responses, 0 to 1, at which visitors are rejected for a while. */
  readonly circuit_breaker?: number | undefined
  /** CAs; a visitor must present a certificate of one of them. */
  readonly mutual_tls?: string | undefined
  /** For tls: where TLS is terminated; by default `upstream`, which passes it through. */
  readonly terminate_at?: 'edge' | 'upstream' | undefined
  /** Certificate and private key for TLS that is terminated at the edge. */
  readonly crt?: string | undefined
  readonly key?: string | undefined
  readonly webhook_verification?: { readonly provider: string; readonly secret: string } | undefined
  /** Regular expressions. */
  readonly user_agent_filter?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] } | undefined
  readonly websocket_tcp_converter?: boolean | undefined
  /** A traffic policy: JSON, YAML, a file with either, or the object itself. */
  readonly traffic_policy?: string | Readonly<Record<string, unknown>> | undefined
  /** The older name of `traffic_policy`. */
  readonly policy?: string | Readonly<Record<string, unknown>> | undefined
  /** Visitors log in with a well-known provider, such as `github`. */
  readonly oauth?: (LoginOptions & { readonly provider: string }) | undefined
  /** Visitors log in with any provider that speaks OpenID Connect. */
  readonly oidc?: (LoginOptions & { readonly issuer_url: string }) | undefined
}

export interface LoginOptions {
  /** The client id of your own application at the provider. */
  readonly client_id: string
  /** `POSTERN_OAUTH_CLIENT_SECRET` or `POSTERN_OIDC_CLIENT_SECRET` when left out. */
  readonly client_secret?: string | undefined
  /** Who is let in: everybody who logs in, if both are left out. */
  readonly allow_emails?: readonly string[] | undefined
  readonly allow_domains?: readonly string[] | undefined
  /** Scopes to request beside those that the login itself needs. */
  readonly scopes?: readonly string[] | undefined
}

export interface HeaderRules {
  readonly add?: Readonly<Record<string, string>> | readonly string[]
  readonly remove?: readonly string[]
}

/** What one tunnel requests: one address, or two with the same host name. */
export type TunnelPlans = readonly [AgentTunnelPlan] | readonly [AgentTunnelPlan, twin: AgentTunnelPlan]

export interface TunnelContext {
  readonly name: string
  readonly readText: ReadText
  /** Environment variables, which may hold client secrets. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Used instead of `addr` by services inside this process. */
  readonly accept?: Extract<ForwardTarget, { accept: unknown }>['accept'] | undefined
}

/** Reads a tunnel. The reader collects problems; if there are any, the plans must not be used. */
export function readTunnel(
  reader: OptionReader,
  { name, readText, env, accept }: TunnelContext,
): TunnelPlans | undefined {
  const kind = readKind(reader)
  const upstream = readUpstream(reader, kind, { isNeeded: accept === undefined })
  const described = readDescription(reader, kind, { readText, env, ownHost: hostOf(upstream) })
  const { labels, protos, opts, forwardsProto, metadata, isPooled } = described
  const upstreamTls = readUpstreamTls(reader, readText)
  const isInspected = reader.flag('inspect') ?? true
  const description = reader.text('description') ?? ''
  reader.finish()
  const isHttp2 = forwardsProto === 'http2'
  const target: ForwardTarget | undefined = accept
    ? { accept }
    : upstream && {
        dial: upstreamDialer(upstream, { ...upstreamTls, ...(isHttp2 && { protocols: ['h2'] }) }),
        takesProxyLine: Boolean(opts.ProxyProto) && upstream.isTls,
        isHttp2,
        isInspected,
      }
  if (!target) return undefined
  const shared = { name, forwardsTo: upstream?.url ?? '', forwardsProto, metadata, description, target }
  if (labels) return [{ ...shared, asks: { labels } }]
  const [first = 'https', second] = protos
  const asks = { opts, ...(isPooled && { isPooled }) }
  const plan = { ...shared, asks: { ...asks, proto: first } }
  return second ? [plan, { ...shared, asks: { ...asks, proto: second } }] : [plan]
}

function readUpstream(
  reader: OptionReader,
  kind: TunnelKind,
  { isNeeded }: { isNeeded: boolean },
): Upstream | undefined {
  // The nearest of the known keys would be `crt`.
  const hasPort = reader.has('port')
  if (hasPort) reader.fault('port', 'is not a known key; did you mean `addr`?')
  if (!reader.has('addr')) {
    if (isNeeded && !hasPort) reader.fault('addr', 'is missing: it says where the service is, for example `3000`')
    return undefined
  }
  return reader.parsed('addr', (text) => parseUpstream(text, { scheme: kind === 'http' ? 'http' : '' }))
}

function hostOf(upstream: Upstream | undefined): string {
  const [, host = 'localhost'] = /^[a-z]+:\/\/(.*)$/.exec(upstream?.url ?? '') ?? []
  return host.replace(upstream?.isTls ? /:443$/ : /:80$/, '')
}

function readUpstreamTls(reader: OptionReader, readText: ReadText): UpstreamTls {
  const map = reader.map('upstream_tls')
  if (!map) return {}
  const tls = {
    verify: map.flag('verify'),
    ca: map.parsed('ca', (text) => certificatesPem(readText(text))),
    serverName: map.word('server_name'),
  }
  map.finish()
  return tls
}
