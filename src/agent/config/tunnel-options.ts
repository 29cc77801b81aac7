/** A tunnel as people describe it, in a file, in flags or in code, and what becomes of it. */
import { type UpstreamTls, upstreamDialer } from '../dial-upstream.ts'
import type { Target } from '../forward.ts'
import type { Proto, TunnelPlan } from '../tunnel.ts'
import { parseUpstream, type Upstream } from '../upstream.ts'
import { type Opts, readEndpointOptions, type TunnelKind } from './endpoint-options.ts'
import type { Reader } from './reader.ts'
import { certificatesPem, type ReadText } from './text-files.ts'

/** The keys of a tunnel, the same in `postern-agent.yml` and in code. Values that are files may be their content instead. */
export interface TunnelOptions {
  /** Where the service is: `3000`, `host:3000`, `https://host`, `unix:/path`. */
  readonly addr?: string | number | undefined
  /** What visitors speak; `http`, which is also HTTPS, by default. */
  readonly proto?: 'http' | 'tcp' | 'tls' | undefined
  /** For http: the schemes of its address, `https` by default. */
  readonly schemes?: readonly ('http' | 'https')[] | undefined
  /** The whole address to ask for, such as `https://app.example.com` or `tcp://example.com:20001`. */
  readonly url?: string | undefined
  readonly domain?: string | undefined
  readonly hostname?: string | undefined
  /** A name under the domain of the server. */
  readonly subdomain?: string | undefined
  /** For tcp: `host:port` to ask for. */
  readonly remote_addr?: string | undefined
  /** In place of an address: edges find the tunnel by these. */
  readonly labels?: Readonly<Record<string, string>> | readonly string[] | undefined
  /** Shown in the API. */
  readonly metadata?: string | undefined
  /** The `Host` that the service sees: a name, or `rewrite` for its own. */
  readonly host_header?: string | undefined
  /** Version of the PROXY header that the service wants first. */
  readonly proxy_proto?: 0 | 1 | 2 | undefined
  /** What the service speaks, when it is not HTTP/1.1. */
  readonly app_protocol?: 'http1' | 'http2' | undefined
  readonly upstream_tls?: {
    /** Checks the certificate of a service with `https` or `tls`; off by default. */
    readonly verify?: boolean | undefined
    /** CAs that may have signed it; turns the check on. */
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
  /** Share of failed answers, 0 to 1, at which visitors are turned away for a while. */
  readonly circuit_breaker?: number | undefined
  /** CAs whose certificates visitors must show. */
  readonly mutual_tls?: string | undefined
  /** For tls: where TLS ends; `upstream`, which passes it through, by default. */
  readonly terminate_at?: 'edge' | 'upstream' | undefined
  /** Certificate and private key for TLS that ends at the edge. */
  readonly crt?: string | undefined
  readonly key?: string | undefined
  readonly webhook_verification?: { readonly provider: string; readonly secret: string } | undefined
  /** Regular expressions. */
  readonly user_agent_filter?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] } | undefined
  readonly websocket_tcp_converter?: boolean | undefined
  /** A traffic policy: JSON, YAML or a file of them, or the object itself. */
  readonly traffic_policy?: string | Readonly<Record<string, unknown>> | undefined
  /** Its older name. */
  readonly policy?: string | Readonly<Record<string, unknown>> | undefined
  /** Visitors log in with a well-known provider, such as `github`. */
  readonly oauth?: (LoginOptions & { readonly provider: string }) | undefined
  /** Visitors log in with any provider that speaks OpenID Connect. */
  readonly oidc?: (LoginOptions & { readonly issuer_url: string }) | undefined
}

export interface LoginOptions {
  /** Of an application of your own at the provider. */
  readonly client_id: string
  /** `POSTERN_OAUTH_CLIENT_SECRET` or `POSTERN_OIDC_CLIENT_SECRET` when left out. */
  readonly client_secret?: string | undefined
  /** Who is let in; everybody who logs in when both are left out. */
  readonly allow_emails?: readonly string[] | undefined
  readonly allow_domains?: readonly string[] | undefined
  /** Beside those that the login itself needs. */
  readonly scopes?: readonly string[] | undefined
}

export interface HeaderRules {
  readonly add?: Readonly<Record<string, string>> | readonly string[]
  readonly remove?: readonly string[]
}

/** What one tunnel asks for: one address, or two of the same name. */
export type TunnelPlans = readonly [TunnelPlan] | readonly [TunnelPlan, twin: TunnelPlan]

export interface TunnelContext {
  readonly name: string
  readonly readText: ReadText
  /** Holds secrets that are written nowhere else. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** In place of `addr`, for services inside this process. */
  readonly accept?: Extract<Target, { accept: unknown }>['accept'] | undefined
}

/** Reads a tunnel; what is wrong with it is noted by the reader, and then the plans are of no use. */
export function readTunnel(reader: Reader, { name, readText, env, accept }: TunnelContext): TunnelPlans | undefined {
  const proto = reader.choice('proto', ['http', 'tcp', 'tls'])
  const labels = readLabels(reader)
  const kind: TunnelKind = labels ? 'labeled' : (proto ?? 'http')
  if (labels && proto) reader.fault('proto', 'cannot stand beside `labels`: the edge decides')
  const upstream = readUpstream(reader, kind, { isNeeded: accept === undefined })
  const opts = readEndpointOptions(reader, { kind, readText, env })
  const protos = readProtos(reader, kind, opts)
  rewriteHost(reader, kind, upstream, opts)
  const upstreamTls = readUpstreamTls(reader, readText)
  const appProtocol = reader.choice('app_protocol', ['http1', 'http2'])
  const isInspected = reader.flag('inspect') ?? true
  refusePooling(reader)
  const metadata = reader.text('metadata') ?? ''
  reader.finish()
  const target: Target | undefined = accept
    ? { accept }
    : upstream && {
        dial: upstreamDialer(upstream, { ...upstreamTls, ...(appProtocol === 'http2' && { protocols: ['h2'] }) }),
        takesProxyLine: Boolean(opts.ProxyProto) && upstream.isTls,
        isHttp2: appProtocol === 'http2',
        isInspected,
      }
  if (!target) return undefined
  const forwardsProto = appProtocol ?? ('' as const)
  const shared = { name, forwardsTo: upstream?.url ?? '', forwardsProto, metadata, target }
  if (labels) return [{ ...shared, asks: { labels } }]
  const [first = 'https', second] = protos
  const plan = { ...shared, asks: { proto: first, opts } }
  return second ? [plan, { ...shared, asks: { proto: second, opts } }] : [plan]
}

/** Written by those who come from ngrok; an address that two tunnels believe to share would be a surprise later. */
function refusePooling(reader: Reader): void {
  if (reader.flag('pooling')) {
    reader.fault(
      'pooling',
      'cannot be had: an address has one tunnel; give the tunnels the same `labels`, and an edge a tunnel group backend with them',
    )
  }
}

function readLabels(reader: Reader): Readonly<Record<string, string>> | undefined {
  const pairs = reader.pairs('labels', '=')
  if (pairs?.length === 0) reader.fault('labels', 'must not be empty')
  return pairs && Object.fromEntries(pairs)
}

function readUpstream(reader: Reader, kind: TunnelKind, { isNeeded }: { isNeeded: boolean }): Upstream | undefined {
  if (!reader.has('addr')) {
    if (isNeeded) reader.fault('addr', 'is missing: it says where the service is, for example `3000`')
    return undefined
  }
  return reader.parsed('addr', (text) => parseUpstream(text, { scheme: kind === 'http' ? 'http' : '' }))
}

function readProtos(reader: Reader, kind: TunnelKind, { URL: url }: Opts): readonly Proto[] {
  const schemes = reader.texts('schemes')
  if (schemes === undefined) {
    if (kind === 'tcp' || kind === 'tls') return [kind]
    return [typeof url === 'string' && url.startsWith('http://') ? 'http' : 'https']
  }
  if (kind !== 'http') reader.fault('schemes', `is for http tunnels, and this one is ${kind}`)
  // HTTPS first: the other takes its name.
  const protos = (['https', 'http'] as const).filter((each) => schemes.includes(each))
  if (protos.length === 0 || protos.length !== new Set(schemes).size) {
    reader.fault('schemes', 'must be `http`, `https` or both')
  }
  return protos
}

/** The server writes the headers, so a rewritten `Host` is a header rule. */
function rewriteHost(reader: Reader, kind: TunnelKind, upstream: Upstream | undefined, opts: Opts): void {
  const wanted = reader.word('host_header')
  if (wanted === undefined || wanted === 'preserve') return
  if (kind !== 'http') {
    reader.fault('host_header', `is for http tunnels, and this one is ${kind}`)
    return
  }
  if (/[\r\n\0]/.test(wanted)) reader.fault('host_header', 'must be a name')
  const host = wanted === 'rewrite' ? hostOf(upstream) : wanted
  // Written by `readEndpointOptions` a moment ago, or not there.
  const rules = opts.RequestHeaders as { add: string[]; remove: readonly string[] } | undefined
  opts.RequestHeaders = { add: [...(rules?.add ?? []), `host:${host}`], remove: rules?.remove ?? [] }
  opts.HostHeaderRewrite = true
}

function hostOf(upstream: Upstream | undefined): string {
  const [, host = 'localhost'] = /^[a-z]+:\/\/(.*)$/.exec(upstream?.url ?? '') ?? []
  return host.replace(upstream?.isTls ? /:443$/ : /:80$/, '')
}

function readUpstreamTls(reader: Reader, readText: ReadText): UpstreamTls {
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
