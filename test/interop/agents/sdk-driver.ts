/** Drives the official SDK for Node, unmodified. */
import ngrok from '@ngrok/ngrok'
import type { LoginOptions, TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import { authtokenAccess, authtokenCredential } from './authtokens.ts'
import { type AgentDriver, AgentRefusal, type ConnectedAgent, type ConnectOptions, type OpenTunnel } from './driver.ts'

export const sdkDriver: AgentDriver = {
  name: 'the SDK @ngrok/ngrok 1.7.0',
  missing: false,
  shown: { version: /^1\.7\.0$/, os: process.platform, transport: 'service/v2' },
  hasSession: true,
  tellsServices: true,
  answersCommands: false,
  refusedInLog: /No tunnel credential.*agent connection refused|agent connection refused.*No tunnel credential/,
  lacks: [],
  credentials: '/credentials',
  credential: authtokenCredential,
  access: authtokenAccess,
  async connect(options) {
    const session = await refusing(() => sessionBuilder(options).connect())
    return {
      async open(tunnel) {
        return opened(await refusing(() => start(session, tunnel)))
      },
      close: () => closeSession(session),
    } satisfies ConnectedAgent
  },
}

export function sessionBuilder(options: ConnectOptions) {
  const { server, ca, authtoken, metadata, commands = {}, heartbeat, onLost } = options
  const builder = new ngrok.SessionBuilder().serverAddr(server).caCert(Buffer.from(ca)).authtoken(authtoken)
  if (metadata !== undefined) builder.metadata(metadata)
  if (commands.restart) builder.handleRestartCommand(commands.restart)
  if (commands.stop) builder.handleStopCommand(commands.stop)
  if (commands.update) builder.handleUpdateCommand(commands.update)
  if (heartbeat) builder.heartbeatInterval(heartbeat.everyS).heartbeatTolerance(heartbeat.toleranceS)
  if (onLost) {
    builder.handleDisconnection(() => {
      onLost()
      return true
    })
  }
  return builder
}

/** Turns what the SDK throws into an `AgentRefusal`; it shows codes as a field or at the end of its message. */
export async function refusing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new AgentRefusal(/ERR_NGROK_\d+/.exec(message)?.[0] ?? '', message, { cause })
  }
}

export type Session = Awaited<ReturnType<InstanceType<typeof ngrok.SessionBuilder>['connect']>>
/**
 * Its connection stays open afterwards, so the server notices only by its silence. Tunnels that must be gone at once
 * must be closed before, while it is connected: otherwise the SDK waits for its next connection to close them.
 */
export async function closeSession(session: Session): Promise<void> {
  // The SDK throws if the server has already ended the session; it is over either way.
  await session.close().catch(() => {})
}

type Listener = Awaited<ReturnType<ReturnType<Session['tcpEndpoint']>['listenAndForward']>>

function start(session: Session, tunnel: TunnelOptions): Promise<Listener> {
  if (tunnel.labels) return startLabelled(session, tunnel)
  if (tunnel.proto === 'tcp') return startTcp(session, tunnel)
  if (tunnel.proto === 'tls') return startTls(session, tunnel)
  return startHttp(session, tunnel)
}

function startLabelled(session: Session, { labels = {}, metadata, app_protocol, addr }: TunnelOptions) {
  const builder = session.labeledListener()
  for (const [key, value] of Object.entries(labels)) builder.label(key, value)
  if (metadata !== undefined) builder.metadata(metadata)
  if (app_protocol) builder.appProtocol(app_protocol)
  return builder.listenAndForward(withScheme(addr, 'tcp'))
}

function startTcp(session: Session, tunnel: TunnelOptions) {
  const builder = shared(session.tcpEndpoint(), tunnel)
  if (tunnel.remote_addr) builder.remoteAddr(tunnel.remote_addr)
  return builder.listenAndForward(withScheme(tunnel.addr, 'tcp'))
}

function startTls(session: Session, tunnel: TunnelOptions) {
  const { domain, terminate_at, crt, key, mutual_tls } = tunnel
  const builder = shared(session.tlsEndpoint(), tunnel)
  if (domain !== undefined) builder.domain(domain)
  // The SDK can request this only with a certificate of its own.
  if (terminate_at === 'edge') builder.termination(Buffer.from(crt ?? ''), Buffer.from(key ?? ''))
  if (mutual_tls !== undefined) builder.mutualTlsca(Buffer.from(mutual_tls))
  return builder.listenAndForward(withScheme(tunnel.addr, 'tls'))
}

function startHttp(session: Session, tunnel: TunnelOptions) {
  const builder = shared(session.httpEndpoint(), tunnel)
  if (tunnel.schemes?.length === 1 && tunnel.schemes[0] === 'http') builder.scheme('HTTP')
  if (tunnel.domain !== undefined) builder.domain(tunnel.domain)
  if (tunnel.app_protocol) builder.appProtocol(tunnel.app_protocol)
  for (const pair of tunnel.basic_auth ?? []) {
    const [, user = '', password = ''] = /^([^:]*):(.*)$/.exec(pair) ?? []
    builder.basicAuth(user, password)
  }
  for (const [name, value] of Object.entries(tunnel.request_headers?.add ?? {})) builder.requestHeader(name, value)
  for (const name of tunnel.request_headers?.remove ?? []) builder.removeRequestHeader(name)
  for (const [name, value] of Object.entries(tunnel.response_headers?.add ?? {})) builder.responseHeader(name, value)
  for (const name of tunnel.response_headers?.remove ?? []) builder.removeResponseHeader(name)
  for (const regex of tunnel.user_agent_filter?.allow ?? []) builder.allowUserAgent(regex)
  for (const regex of tunnel.user_agent_filter?.deny ?? []) builder.denyUserAgent(regex)
  if (tunnel.compression) builder.compression()
  if (tunnel.websocket_tcp_converter) builder.websocketTcpConversion()
  if (tunnel.circuit_breaker !== undefined) builder.circuitBreaker(tunnel.circuit_breaker)
  if (tunnel.mutual_tls !== undefined) builder.mutualTlsca(Buffer.from(tunnel.mutual_tls))
  const webhook = tunnel.webhook_verification
  if (webhook) builder.webhookVerification(webhook.provider, webhook.secret)
  const { oauth, oidc } = tunnel
  if (oauth) builder.oauth(oauth.provider, ...listsOf(oauth), oauth.client_id, oauth.client_secret)
  if (oidc) builder.oidc(oidc.issuer_url, oidc.client_id, oidc.client_secret ?? '', ...listsOf(oidc))
  return builder.listenAndForward(withScheme(tunnel.addr, 'http'))
}

/** The lists in the order of the SDK's parameters. */
function listsOf({ allow_emails = [], allow_domains = [], scopes = [] }: LoginOptions): [string[], string[], string[]] {
  return [[...allow_emails], [...allow_domains], [...scopes]]
}

/** Options of endpoints of all kinds. */
interface SharedBuilder {
  metadata(text: string): unknown
  allowCidr(cidr: string): unknown
  denyCidr(cidr: string): unknown
  proxyProto(version: string): unknown
  verifyUpstreamTls(verify: boolean): unknown
  trafficPolicy(text: string): unknown
}

function shared<B extends SharedBuilder>(builder: B, tunnel: TunnelOptions): B {
  const { metadata, ip_restriction, proxy_proto, traffic_policy, upstream_tls } = tunnel
  if (metadata !== undefined) builder.metadata(metadata)
  for (const cidr of ip_restriction?.allow ?? []) builder.allowCidr(cidr)
  for (const cidr of ip_restriction?.deny ?? []) builder.denyCidr(cidr)
  if (proxy_proto) builder.proxyProto(String(proxy_proto))
  if (traffic_policy !== undefined) {
    builder.trafficPolicy(typeof traffic_policy === 'string' ? traffic_policy : JSON.stringify(traffic_policy))
  }
  builder.verifyUpstreamTls(upstream_tls?.verify ?? false)
  return builder
}

/** Adds the scheme that the SDK requires. */
function withScheme(addr: string | number | undefined, scheme: string): string {
  const text = String(addr)
  return text.includes('://') ? text : `${scheme}://${text}`
}

function opened(listener: Listener): OpenTunnel {
  return { url: listener.url() ?? '', close: () => listener.close() }
}
